package serve

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// service is the API as the generated code has it, apart from Server so that Server's methods are those of its users.
type service struct {
	apiv1.UnimplementedQueriesServer
	s *Server
}

// call is what all questions have in common.
type call struct {
	// caller ends when who asks does not wait any more, which is later than the deadline of the question.
	caller context.Context
	// hop says that another instance has forwarded the question: it goes no further.
	hop      bool
	redirect bool
	want     query.Want
	raw      bool
	fields   *fields
}

// common are the fields that most requests have.
type common interface {
	GetConsistency() apiv1.Consistency
	GetMaxLag() int64
	GetMinWatermark() string
	GetPosition() string
	GetTimeout() string
}

// shaped are the fields of requests for rows.
type shaped interface {
	GetRedirect() bool
	GetRaw() bool
	GetFields() []string
}

// answer runs one question: who asks, the limits, the deadline, and what becomes of an error.
func answer[Req proto.Message, Resp any](s *Server, ctx context.Context, method string, req Req, fn func(context.Context, *call) (Resp, error)) (out Resp, err error) {
	var zero Resp
	done := s.metrics.begin(s.cfg.Clock, method)
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Logger.Error("question panicked", zap.String("method", method), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = &query.Error{Reason: query.Failed, Message: fmt.Sprintf("panic: %v", p)}
		}
		if done(err); err != nil {
			out, err = zero, statusOf(err)
		}
	}()
	ctx, cancel, err := s.end.join(ctx, method == "Watch")
	if err != nil {
		return zero, err
	}
	defer cancel()
	c, err := s.begin(ctx, req)
	if err != nil {
		return zero, err
	}
	c.caller = ctx
	if method != "Watch" {
		timeout := ""
		if t, ok := any(req).(common); ok {
			timeout = t.GetTimeout()
		}
		var stop context.CancelFunc
		if ctx, stop, err = s.deadline(ctx, timeout); err != nil {
			return zero, err
		}
		defer stop()
	}
	return fn(ctx, c)
}

// begin looks at who asks and at what all requests have.
func (s *Server) begin(ctx context.Context, req proto.Message) (*call, error) {
	c := &call{hop: hopped(ctx)}
	who, err := s.authenticate(ctx, req)
	if err != nil {
		return nil, err
	}
	if !s.buckets.take(who) {
		return nil, query.Errorf(query.Quota, "more than %g questions a second", s.cfg.Rate.PerSecond)
	}
	if n := proto.Size(req); n > s.cfg.Limits.Request {
		return nil, query.Errorf(query.TooLarge, "a question of %d bytes exceeds the limit of %d", n, s.cfg.Limits.Request)
	}
	if r, ok := req.(common); ok {
		if c.want, err = want(r); err != nil {
			return nil, err
		}
	}
	if r, ok := req.(shaped); ok {
		c.redirect, c.raw = r.GetRedirect(), r.GetRaw()
		if c.fields, err = parseFields(r.GetFields(), c.raw); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// want reads how new the answer must be.
func want(r common) (w query.Want, err error) {
	switch r.GetConsistency() {
	case apiv1.Consistency_COMMITTED:
	case apiv1.Consistency_STALE:
		w.Consistency = query.Stale
	default:
		return w, query.Errorf(query.InvalidRequest, "consistency is COMMITTED or STALE")
	}
	if w.MaxLag = r.GetMaxLag(); w.MaxLag < 0 {
		return w, query.Errorf(query.InvalidRequest, "max_lag is negative")
	}
	if w.MinWatermark, w.HasMinWatermark, err = parseTime("min_watermark", r.GetMinWatermark()); err != nil {
		return w, err
	}
	w.Position, err = query.ParsePosition(r.GetPosition())
	return w, err
}

// errLate ends a question at its deadline. It is the error of one that was reading then.
var errLate = query.Errorf(query.Deadline, "the deadline came before the answer")

// deadline bounds a question. It ends a little before the caller stops to listen, so that the named error gets through.
func (s *Server) deadline(ctx context.Context, text string) (context.Context, context.CancelFunc, error) {
	d := s.cfg.Limits.Timeout
	at, has := ctx.Deadline()
	if has {
		left := at.Sub(s.cfg.Clock.Now())
		d = min(left-min(left/10, 50*time.Millisecond), s.cfg.Limits.MaxTimeout)
	}
	if text != "" {
		t, err := time.ParseDuration(text)
		if err != nil || t <= 0 {
			return nil, nil, query.Errorf(query.InvalidRequest, "timeout %.40q is none: it is a number with a unit, as 500ms or 2s", text)
		}
		if t > s.cfg.Limits.MaxTimeout {
			return nil, nil, query.Errorf(query.InvalidRequest, "timeout %s exceeds the limit of %s", t, s.cfg.Limits.MaxTimeout)
		}
		if d = min(t, d); !has {
			d = t
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d, errLate)
	return ctx, cancel, nil
}
