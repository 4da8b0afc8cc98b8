package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/client"
)

type registryCall struct {
	Address string          `json:"address"`
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
	Headers []string        `json:"headers"`
}

type registryReply struct {
	Messages []json.RawMessage `json:"messages"`
	Code     string            `json:"code"`
	Message  string            `json:"message"`
}

func init() {
	// Any method of any service of a registry, by the messages that upstream's clients are compiled with.
	about("registry/call", callRegistry)
	// What OLM itself does to a registry, through its own client library.
	about("registry/client", func(address string) (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		connection, err := client.NewClient(address)
		if err != nil {
			return nil, err
		}
		defer connection.Close()
		healthy, err := connection.HealthCheck(ctx, 10*time.Second)
		if err != nil {
			return nil, err
		}
		bundles, err := connection.ListBundles(ctx)
		if err != nil {
			return nil, err
		}
		csvs := []string{}
		for bundle := bundles.Next(); bundle != nil; bundle = bundles.Next() {
			csvs = append(csvs, bundle.GetCsvName())
		}
		return map[string]any{"healthy": healthy, "bundles": csvs}, bundles.Error()
	})
}

type method struct {
	path     string
	streams  bool
	request  proto.Message
	response func() proto.Message
}

func registryMethods() map[string]method {
	bundle := func() proto.Message { return &api.Bundle{} }
	entry := func() proto.Message { return &api.ChannelEntry{} }
	on := func(name string) string { return "/api.Registry/" + name }
	return map[string]method{
		"ListPackages":                       {on("ListPackages"), true, &api.ListPackageRequest{}, func() proto.Message { return &api.PackageName{} }},
		"GetPackage":                         {on("GetPackage"), false, &api.GetPackageRequest{}, func() proto.Message { return &api.Package{} }},
		"GetBundle":                          {on("GetBundle"), false, &api.GetBundleRequest{}, bundle},
		"GetBundleForChannel":                {on("GetBundleForChannel"), false, &api.GetBundleInChannelRequest{}, bundle},
		"GetChannelEntriesThatReplace":       {on("GetChannelEntriesThatReplace"), true, &api.GetAllReplacementsRequest{}, entry},
		"GetBundleThatReplaces":              {on("GetBundleThatReplaces"), false, &api.GetReplacementRequest{}, bundle},
		"GetChannelEntriesThatProvide":       {on("GetChannelEntriesThatProvide"), true, &api.GetAllProvidersRequest{}, entry},
		"GetLatestChannelEntriesThatProvide": {on("GetLatestChannelEntriesThatProvide"), true, &api.GetLatestProvidersRequest{}, entry},
		"GetDefaultBundleThatProvides":       {on("GetDefaultBundleThatProvides"), false, &api.GetDefaultProviderRequest{}, bundle},
		"ListBundles":                        {on("ListBundles"), true, &api.ListBundlesRequest{}, bundle},
		"Health": {"/grpc.health.v1.Health/Check", false, &grpc_health_v1.HealthCheckRequest{},
			func() proto.Message { return &grpc_health_v1.HealthCheckResponse{} }},
	}
}

func callRegistry(call registryCall) (any, error) {
	known, ok := registryMethods()[call.Method]
	if !ok {
		return nil, errors.New("no such method")
	}
	if len(call.Request) > 0 {
		if err := protojson.Unmarshal(call.Request, known.request); err != nil {
			return nil, err
		}
	}
	connection, err := grpc.NewClient(call.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if len(call.Headers) > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, call.Headers...)
	}
	reply := registryReply{Messages: []json.RawMessage{}}
	err = receive(ctx, connection, known, func(response proto.Message) error {
		encoded, err := protojson.Marshal(response)
		reply.Messages = append(reply.Messages, encoded)
		return err
	})
	if err != nil {
		found := status.Convert(err)
		reply.Code, reply.Message = found.Code().String(), found.Message()
	}
	return reply, nil
}

func receive(ctx context.Context, connection *grpc.ClientConn, known method, take func(proto.Message) error) error {
	if !known.streams {
		response := known.response()
		if err := connection.Invoke(ctx, known.path, known.request, response); err != nil {
			return err
		}
		return take(response)
	}
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, known.path)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(known.request); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		response := known.response()
		if err := stream.RecvMsg(response); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := take(response); err != nil {
			return err
		}
	}
}
