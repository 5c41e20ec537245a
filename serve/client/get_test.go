package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/query"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// keyOf returns a key in a partition.
func keyOf(p int32) string {
	for i := 0; ; i++ {
		if k := fmt.Sprint("k", i); partitionOf(k) == p {
			return k
		}
	}
}

func is(err error, r query.Reason) bool { return errors.Is(err, &query.Error{Reason: r}) }

// bubble runs a test with an app of n instances, whose clocks cost nothing.
func bubble(t *testing.T, n int, fn func(t *testing.T, a *app)) {
	synctest.Test(t, func(t *testing.T) { fn(t, newApp(t, n)) })
}

func counts(t testing.TB, c *Client) *Reader[string, string] {
	r, err := Store[string, string](c, "counts", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func get(t testing.TB, r *Reader[string, string], key, want string) Result[string] {
	t.Helper()
	res, err := r.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get(%s): %v", key, err)
	}
	if res.Value != want || res.Found != (want != "") {
		t.Fatalf("Get(%s): got %q, found %v, want %q", key, res.Value, res.Found, want)
	}
	return res
}

func wantAsked(t testing.TB, a *app, want string) {
	t.Helper()
	if got := a.asked(); got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestGetGoesToTheOwner(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		k0, k1 := keyOf(0), keyOf(1)
		a.put(k0, "a")
		_, seq := a.put(k1, "b")
		get(t, r, k0, "a")
		res := get(t, r, k1, "b")
		wantAsked(t, a, "get0 get1")
		if res.Seq != seq || res.Task != (query.Task{Sub: "main", Partition: 1}) || res.Age != 5*time.Millisecond || res.Watermark != query.NoWatermark {
			t.Errorf("meta %+v", res.Meta)
		}
		missing := get(t, r, keyOf(2), "")
		if missing.Task.Partition != 2 || missing.Seq != 0 {
			t.Errorf("meta of a key that is not there: %+v", missing.Meta)
		}
	})
}

func TestViaEndpoints(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{ViaEndpoints: true, Endpoints: []string{endpoint(2), endpoint(1)}}))
		a.put(keyOf(0), "a")
		get(t, r, keyOf(0), "a")
		if got := a.asked(); got != "get1" && got != "get2" {
			t.Errorf("asked %q", got)
		}
	})
}

// A redirect names the owner, and the map is asked of the instance that knew.
func TestRedirect(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		k := keyOf(0)
		a.put(k, "a")
		get(t, r, k, "a")
		a.asked()
		a.move(0, 2)
		a.publish()
		get(t, r, k, "a")
		wantAsked(t, a, "get0 get2")
		time.Sleep(atlasPause)
		get(t, r, k, "a")
		wantAsked(t, a, "get2")
	})
}

// Two instances that each take the other for the owner are not asked for ever.
func TestRedirectsInCircles(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		k := keyOf(0)
		a.put(k, "a")
		get(t, r, k, "a")
		a.asked()
		a.move(0, 1)
		a.publish(0) // instance 0 knows that it is 1
		a.move(0, 0)
		a.publish(1) // 1 knows that it is 0, as it had been
		a.move(0, 2)
		get(t, r, k, "a")
		wantAsked(t, a, "get0 get1 get0 get1")
	})
}

// A connection to an instance that is gone from the map is closed.
func TestConnectionsAreClosed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		c := a.client(Config{})
		r := counts(t, c)
		for p := range int32(partitions) {
			get(t, r, keyOf(p), "")
		}
		if len(c.pool.conns) != 3 {
			t.Errorf("%d connections, want 3", len(c.pool.conns))
		}
		a.stop(2)
		a.move(2, 1)
		a.publish()
		time.Sleep(atlasPause)
		get(t, r, keyOf(2), "")
		if len(c.pool.conns) != 2 {
			t.Errorf("%d connections, want 2", len(c.pool.conns))
		}
	})
}

// A map of an earlier generation does not take the place of a later one; that of a group that began anew does.
func TestGenerations(t *testing.T) {
	hosts := func(gen int32, from string, at time.Duration) *atlas {
		a := &atlas{hosts: mapOf(gen), from: from, at: time.Unix(0, 0).Add(at)}
		return a
	}
	old := hosts(5, "a", 0)
	for _, c := range []struct {
		next *atlas
		want bool
	}{
		{hosts(5, "b", 1), true},
		{hosts(6, "b", 1), true},
		{hosts(4, "b", 1), false},
		{hosts(4, "", 1), false},
		{hosts(1, "a", 1), true},
		{hosts(1, "b", atlasAge), false},
		{hosts(1, "b", atlasAge+1), true},
	} {
		if got := c.next.replaces(old); got != c.want {
			t.Errorf("generation %d of %q after %v: got %v", c.next.hosts.GetGeneration(), c.next.from, c.next.at.Sub(old.at), got)
		}
	}
	if !old.replaces(nil) {
		t.Error("the first map is not taken")
	}
}

// While nobody runs the task the client goes on asking, and finds the new owner.
func TestGetDuringAMove(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		c := a.client(Config{})
		r := counts(t, c)
		k := keyOf(0)
		a.put(k, "a")
		get(t, r, k, "a")
		a.move(0, -1)
		a.publish()
		go func() {
			time.Sleep(2 * time.Second)
			a.move(0, 1)
			a.publish()
		}()
		start := time.Now()
		get(t, r, k, "a")
		if d := time.Since(start); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("answered after %v", d)
		}
	})
}

func TestOwnerCrashes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{Endpoints: []string{endpoint(0), endpoint(2)}}))
		k := keyOf(1)
		a.put(k, "a")
		get(t, r, k, "a")
		a.stop(1)
		go func() {
			time.Sleep(time.Second)
			a.move(1, 2)
			a.publish()
		}()
		get(t, r, k, "a")
		a.asked()
		get(t, r, k, "a")
		wantAsked(t, a, "get2")
	})
}

// The only configured endpoint is gone: the others are known from the map.
func TestEndpointCrashes(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		a.put(keyOf(1), "a")
		get(t, r, keyOf(1), "a")
		a.stop(0)
		a.move(0, 2)
		a.move(3, 2)
		a.publish()
		get(t, r, keyOf(0), "")
		get(t, r, keyOf(1), "a")
	})
}

func TestErrors(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		c := a.client(Config{Endpoints: []string{endpoint(0), endpoint(1)}})
		r := counts(t, c)
		get(t, r, keyOf(0), "")
		a.asked()

		a.move(0, -1)
		a.publish()
		_, err := r.Get(t.Context(), keyOf(0))
		if !is(err, query.NoOwner) || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "because") {
			t.Errorf("no owner: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err = r.Get(ctx, keyOf(0)); !is(err, query.Cancelled) || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		a.move(0, 0)
		a.publish()

		if _, err = r.Get(t.Context(), keyOf(0), AtPosition(query.Position{{Name: "main", Partition: 0, Commit: true, Number: 9}})); !is(err, query.PositionNotReached) {
			t.Errorf("position: %v", err)
		}

		// An error that has nothing to do with moves is told at once.
		a.asked()
		a.instances[0].fail = func(string) error { return reply(query.Quota, codes.ResourceExhausted) }
		if _, err = r.Get(t.Context(), keyOf(0)); !is(err, query.Quota) {
			t.Errorf("quota: %v", err)
		}
		wantAsked(t, a, "get0")
		a.instances[0].fail = nil

		other, err := Store[int64, string](c, "counts", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = other.Get(t.Context(), 1); !is(err, query.KeyMalformed) || !strings.Contains(err.Error(), "string") {
			t.Errorf("keys of another type: %v", err)
		}
		values, err := Store[string, int64](c, "counts", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = values.Get(t.Context(), "k"); !is(err, query.InvalidRequest) || !strings.Contains(err.Error(), "int64") {
			t.Errorf("values of another type: %v", err)
		}
		if _, err = Store[func(), string](c, "counts", nil, nil); !errors.Is(err, codec.ErrUnsupported) {
			t.Errorf("keys that have no codec: %v", err)
		}
		c.Close()
		if _, err = r.Get(t.Context(), keyOf(0)); err == nil {
			t.Error("a closed client answers")
		}
	})
}

func TestUnreachable(t *testing.T) {
	bubble(t, 1, func(t *testing.T, a *app) {
		a.stop(0)
		start := time.Now()
		_, err := counts(t, a.client(Config{Timeout: time.Second})).Get(t.Context(), "k")
		if !is(err, query.NoOwner) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("after %v", d)
		}
	})
	if _, err := New(Config{}); err == nil {
		t.Error("no endpoint is no error")
	}
	if _, err := New(Config{Endpoints: []string{"localhost"}}); err == nil {
		t.Error("an endpoint without a port is no error")
	}
}

// An instance that hangs costs the questions that were on their way, and later ones nothing.
func TestHungInstanceTellsNoMap(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		a.instances[0].hung = true
		r := counts(t, a.client(Config{Endpoints: []string{endpoint(0), endpoint(1)}}))
		a.put(keyOf(1), "a")
		start := time.Now()
		get(t, r, keyOf(1), "a")
		if d := time.Since(start); d > surveyTimeout {
			t.Errorf("answered after %v", d)
		}
	})
}

// A map that one instance was too slow to tell is asked of others first for a while.
func TestHungInstanceIsAskedLast(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		c := a.client(Config{})
		r := counts(t, c)
		get(t, r, keyOf(1), "")
		a.instances[0].hung = true
		for _, want := range []time.Duration{surveyTimeout, 0} {
			time.Sleep(atlasPause)
			c.keeper.wrong("")
			start := time.Now()
			get(t, r, keyOf(1), "")
			if d := time.Since(start); d != want {
				t.Errorf("answered after %v, want %v", d, want)
			}
		}
	})
}

// Who has just said that there is no owner is not asked again at once.
func TestAnotherIsAsked(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		r := counts(t, a.client(Config{}))
		get(t, r, keyOf(1), "")
		a.asked()
		a.instances[0].fail = func(m string) error {
			if m != "scan" {
				return nil
			}
			return reply(query.NoOwner, codes.Unavailable)
		}
		if _, err := keysOf(r.Scan(t.Context())); err != nil {
			t.Error(err)
		}
		wantAsked(t, a, "scan0 scan1")
	})
}

// That an instance is not the owner is not what the caller has asked.
func TestNotOwnerUntilTheDeadline(t *testing.T) {
	bubble(t, 2, func(t *testing.T, a *app) {
		for _, in := range a.instances {
			in.fail = func(m string) error {
				if m == "" {
					return nil
				}
				return reply(query.NotOwner, codes.FailedPrecondition)
			}
		}
		_, err := counts(t, a.client(Config{})).Get(t.Context(), "k")
		if !is(err, query.NoOwner) || is(err, query.NotOwner) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCandidates(t *testing.T) {
	bubble(t, 3, func(t *testing.T, a *app) {
		c := a.client(Config{Endpoints: []string{endpoint(0), "elsewhere:1"}})
		get(t, counts(t, c), keyOf(0), "")
		time.Sleep(downFor)
		c.next.Store(1)
		got := func(first string) string { return strings.Join(c.candidates(first), " ") }
		if got, want := got(""), "instance-0:1 elsewhere:1 instance-1:1 instance-2:1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, want := got("instance-2:1"), "instance-2:1 elsewhere:1 instance-0:1 instance-1:1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		c.pool.mark("instance-0:1", time.Now(), false)
		if got, want := got(""), "elsewhere:1 instance-1:1 instance-2:1 instance-0:1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		time.Sleep(downFor)
		c.next.Store(1)
		if got, want := got(""), "instance-0:1 elsewhere:1 instance-1:1 instance-2:1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		// Connections to instances that are gone are closed.
		get(t, counts(t, c), keyOf(1), "")
		if n := len(c.pool.conns); n < 2 {
			t.Errorf("%d connections", n)
		}
		c.pool.keep(map[string]bool{endpoint(0): true})
		if len(c.pool.conns) != 1 || c.pool.conns[endpoint(0)] == nil {
			t.Errorf("connections %v", c.pool.conns)
		}
	})
}

func mapOf(gen int32) *apiv1.GetHostsResponse {
	return &apiv1.GetHostsResponse{Generation: &gen}
}
