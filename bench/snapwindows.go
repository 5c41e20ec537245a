package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark/tidemark/bench/internal/workload"
	apiv1 "github.com/tidemark/tidemark/serve/api/v1"
)

// With windows the state is that of the workload WINDOWS: as many keys in each of 200 windows, every key in one window only. After the
// snapshots the watermark moves on by 50 minutes, with few records, which ends the oldest 50 windows for good: their rows
// are in the snapshots and must not come back, and the changelogs are cut off behind them.

const (
	minute  = 60_000
	trimmed = 50 // windows
)

func window(ms int64) int64 { return ms - ms%minute }

// setWindow notes a record of a window.
func (x *snapBench) setWindow(key, value []byte, ms int64) { x.rows.Set(key, value, window(ms)) }

// fillWindows notes what Load has written.
func (x *snapBench) fillWindows(n int) {
	g := workload.NewGen(x.spec, n, x.bench.seed)
	var rec workload.Rec
	var key, value []byte
	for g.Next(&rec) {
		key, value = workload.AppendKey(key[:0], rec.ID), g.AppendValue(value[:0], &rec)
		x.setWindow(key, value, rec.Time)
	}
	x.now = workload.Base + x.spec.Span + minute/2
}

// moveOn writes the tail, as many records in each of 50 windows, and waits until the changelogs have been cut off.
func (x *snapBench) moveOn(ctx context.Context) error {
	from := x.now + 1
	x.now, x.moved = x.now+trimmed*minute, true
	last := x.now
	u := x.updates(workload.Updates{N: x.tail})
	u.At = func(i int) (uint64, int64) {
		ms := from + int64(i)*trimmed*minute/int64(x.tail)
		if i >= x.tail-100 {
			ms = last // in every partition
		}
		return x.spec.Keys + uint64(i), ms
	}
	if err := workload.Update(ctx, x.addr, x.spec, u); err != nil {
		return err
	}
	for id := range x.spec.Keys {
		ms := workload.Base + int64(id)*x.spec.Span/int64(x.spec.Keys)
		if window(ms)+minute+workload.Kept*minute > last {
			break
		}
		x.rows.Remove(id)
	}
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	for {
		starts, err := x.adm.ListStartOffsets(ctx, stateGroup+"-rows-changelog")
		if err != nil {
			return err
		}
		cut := true
		starts.Each(func(o kadm.ListedOffset) { cut = cut && o.Offset > 0 })
		if cut {
			return nil
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("the changelogs are not cut off: %w", err)
		}
	}
}

// checkServed compares the rows that the instance answers with, in all windows, with those there must be. Nothing is written any more.
func (x *snapBench) checkServed(ctx context.Context, addr string) (verdict string, err error) {
	if err := x.waitDrained(ctx, stateGroup, x.spec.Input(), x.spec.Output(), 100); err != nil {
		return "", err
	}
	if err := wait(ctx, time.Second); err != nil { // until the last commit can be read
		return "", err
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	client := apiv1.NewQueriesClient(conn)
	req := &apiv1.RowsRequest{Store: "rows", Raw: true}
	var n int64
	var sum uint64
	for {
		page, err := client.Windows(ctx, req)
		if err != nil {
			return "", err
		}
		for _, r := range page.Rows {
			n++
			sum += x.rows.Hash(r.Key.GetRaw(), r.Value.GetRaw(), r.GetStart())
		}
		if page.NextPageToken == "" {
			break
		}
		req.PageToken = page.NextPageToken
	}
	return x.rows.Compare(n, sum), nil
}
