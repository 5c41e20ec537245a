package serve

import (
	"errors"
	"io"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// restWatch serves watches over HTTP: one line of JSON per event. The gateway's own stream wraps events and needs a
// connection to itself.
func restWatch(s *Server, gateway *runtime.ServeMux) error {
	serve := func(w http.ResponseWriter, r *http.Request, path map[string]string) {
		req := &apiv1.WatchRequest{}
		var err error
		if r.Method == http.MethodPost {
			var body []byte
			if body, err = io.ReadAll(r.Body); err == nil && len(body) > 0 {
				err = decodeJSON(body, req)
			}
		} else if err = r.ParseForm(); err == nil {
			err = runtime.PopulateQueryParameters(req, r.Form, utilities.NewDoubleArray(nil))
		}
		if err != nil {
			restError(r.Context(), gateway, marshaler{}, w, r, status.Error(codes.InvalidArgument, err.Error()))
			return
		}
		req.Store = path["store"]
		putBack(r.Context(), &req.Store, nil)
		ctx, err := runtime.AnnotateIncomingContext(r.Context(), gateway, r, apiv1.Queries_Watch_FullMethodName)
		if err != nil {
			restError(r.Context(), gateway, marshaler{}, w, r, err)
			return
		}
		l := &lines{s: s, w: w, control: http.NewResponseController(w)}
		if err = s.api.watch(ctx, req, func() {}, l.send); err == nil {
			return
		}
		if !l.begun {
			restError(ctx, gateway, marshaler{}, w, r, err)
			return
		}
		_ = l.write(func(w io.Writer) error {
			if _, err := io.WriteString(w, `{"error":`); err != nil {
				return err
			}
			_, err := w.Write(append(statusJSON(named(err)), "}\n"...))
			return err
		})
	}
	return errors.Join(
		gateway.HandlePath(http.MethodGet, "/v1/stores/{store}:watch", serve),
		gateway.HandlePath(http.MethodPost, "/v1/stores/{store}:watch", serve),
	)
}

// lines writes events as lines.
type lines struct {
	s       *Server
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (l *lines) send(e *apiv1.WatchEvent) error {
	return l.write(func(w io.Writer) error {
		b, err := marshaler{}.Marshal(e)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
}

// write writes one line. A client that takes none of it for as long as any question may take is left: its token lets it
// come back.
func (l *lines) write(fn func(io.Writer) error) error {
	_ = l.control.SetWriteDeadline(l.s.cfg.Clock.Now().Add(l.s.cfg.Limits.MaxTimeout))
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/x-ndjson")
		l.w.Header().Set("Cache-Control", "no-store")
		l.w.WriteHeader(http.StatusOK)
	}
	if err := fn(l.w); err != nil {
		return err
	}
	return l.control.Flush()
}
