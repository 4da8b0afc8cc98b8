package main

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// exchange is what a check may want to know about one request and its answer.
type exchange struct {
	method   string
	path     string
	query    url.Values
	sent     string // Content-Type of the request
	received string // Content-Type of the answer
	status   int
}

func (e exchange) watches() bool {
	return e.query.Get("watch") != "" && e.query.Get("watch") != "false"
}

// wire remembers every exchange and can cut the watches that are open, as a failing network would.
type wire struct {
	mu        sync.Mutex
	exchanges []exchange
	watches   []*severable
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			return response, err
		}
		seen := exchange{
			method:   request.Method,
			path:     request.URL.Path,
			query:    request.URL.Query(),
			sent:     request.Header.Get("Content-Type"),
			received: response.Header.Get("Content-Type"),
			status:   response.StatusCode,
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exchanges = append(w.exchanges, seen)
		if seen.watches() && seen.status == http.StatusOK {
			body := &severable{ReadCloser: response.Body}
			response.Body = body
			w.watches = append(w.watches, body)
		}
		return response, nil
	})
}

// mark names the present moment, so that a check can ask what happened after it.
func (w *wire) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.exchanges)
}

// since returns the exchanges after a mark whose path ends as given.
func (w *wire) since(mark int, pathSuffix string) []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []exchange
	for _, seen := range w.exchanges[mark:] {
		if strings.HasSuffix(seen.path, pathSuffix) {
			found = append(found, seen)
		}
	}
	return found
}

// sever cuts every watch that is open and returns how many there were.
func (w *wire) sever() int {
	w.mu.Lock()
	open := w.watches
	w.watches = nil
	w.mu.Unlock()
	cut := 0
	for _, body := range open {
		if !body.closed.Load() {
			cut++
		}
		body.severed.Store(true)
		_ = body.ReadCloser.Close()
	}
	return cut
}

// severable is a body that, once severed, ends in the middle as a lost connection does.
type severable struct {
	io.ReadCloser
	severed, closed atomic.Bool
}

func (s *severable) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.severed.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func (s *severable) Close() error {
	s.closed.Store(true)
	return s.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
