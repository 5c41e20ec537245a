package serve

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"net/http"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark/tidemark/query"
)

// restError tells an error of the API over HTTP.
func restError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	s := named(err)
	e := reasoned(Error(s.Err()))
	c := table[e.Reason]
	if c.http == 0 {
		c.http = runtime.HTTPStatusFromCode(s.Code())
	}
	h := w.Header()
	if c.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int(c.retry.Seconds()))))
	}
	if e.Reason == query.Unauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if e.Reason == query.NotOwner && e.Host.Endpoint != "" {
		scheme := "http://"
		if r.TLS != nil {
			scheme = "https://"
		}
		uri := r.RequestURI
		if !strings.HasPrefix(uri, "/") {
			uri = r.URL.RequestURI()
		}
		h.Set("Location", scheme+e.Host.Endpoint+uri)
		c.http = http.StatusTemporaryRedirect
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(c.http)
	_, _ = w.Write(append(statusJSON(s), '\n'))
}

// named is the status of an error; what the gateway finds wrong with a request gets a reason too.
func named(err error) *status.Status {
	s := status.Convert(err)
	for _, d := range s.Details() {
		if _, ok := d.(*errdetails.ErrorInfo); ok {
			return s
		}
	}
	reason := query.Failed
	switch s.Code() {
	case codes.InvalidArgument:
		reason = query.InvalidRequest
	case codes.Canceled:
		reason = query.Cancelled
	case codes.DeadlineExceeded:
		reason = query.Deadline
	}
	return status.Convert(statusOf(query.Errorf(reason, "%s", s.Message())))
}

// restRoutingError tells that there is no such path.
func restRoutingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	s := status.Newf(codes.Unimplemented, "there is no %s of this path; see /v1/openapi.json", r.Method)
	_, _ = w.Write(append(statusJSON(s), '\n'))
}

// statusJSON returns a google.rpc.Status as JSON, with the reason once more where it is easy to find.
func statusJSON(s *status.Status) []byte {
	var out bytes.Buffer
	e := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true))
	if err := writeStatus(e, s); err != nil {
		return []byte(`{"code":13,"reason":"FAILED","message":"the error cannot be shown","details":[]}`)
	}
	return bytes.TrimSpace(out.Bytes())
}

func writeStatus(e *jsontext.Encoder, s *status.Status) error {
	p := s.Proto()
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	if err := writeName(e, "code", jsontext.Int(int64(p.Code))); err != nil {
		return err
	}
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			if err := writeName(e, "reason", jsontext.String(info.Reason)); err != nil {
				return err
			}
		}
	}
	if err := writeName(e, "message", jsontext.String(p.Message)); err != nil {
		return err
	}
	if err := e.WriteToken(jsontext.String("details")); err != nil {
		return err
	}
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, d := range p.Details {
		if err := writeMessage(e, d.ProtoReflect()); err != nil {
			return err
		}
	}
	if err := e.WriteToken(jsontext.EndArray); err != nil {
		return err
	}
	return e.WriteToken(jsontext.EndObject)
}
