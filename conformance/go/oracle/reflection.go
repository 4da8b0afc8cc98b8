package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type reflectedCall struct {
	Address string          `json:"address"`
	Service string          `json:"service"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
}

func init() {
	// As grpcurl does it: nothing is known beforehand, the server describes itself.
	about("registry/reflect", callByReflection)
}

func callByReflection(call reflectedCall) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection, err := grpc.NewClient(call.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	service, err := describe(ctx, connection, call.Service)
	if err != nil {
		return nil, err
	}
	found := service.Methods().ByName(protoreflect.Name(call.Method))
	if found == nil {
		return nil, fmt.Errorf("the server describes no method %s", call.Method)
	}
	request := dynamicpb.NewMessage(found.Input())
	if err := protojson.Unmarshal(call.Request, request); err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/%s/%s", service.FullName(), found.Name())
	known := method{path, found.IsStreamingServer(), request, func() proto.Message {
		return dynamicpb.NewMessage(found.Output())
	}}
	replies := []json.RawMessage{}
	err = receive(ctx, connection, known, func(response proto.Message) error {
		encoded, err := protojson.Marshal(response)
		replies = append(replies, encoded)
		return err
	})
	return replies, err
}

// describe asks the server for the file that defines a service.
func describe(ctx context.Context, connection *grpc.ClientConn, name string) (protoreflect.ServiceDescriptor, error) {
	stream, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	question := &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name}
	if err := stream.Send(&reflection.ServerReflectionRequest{MessageRequest: question}); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, data := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(data, file); err != nil {
				return nil, err
			}
			set.File = append(set.File, file)
		}
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, err
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil, err
	}
	return found.(protoreflect.ServiceDescriptor), nil
}
