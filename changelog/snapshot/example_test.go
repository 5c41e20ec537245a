package snapshot_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tidemark/tidemark/changelog/objects"
	"github.com/tidemark/tidemark/changelog/snapshot"
)

// checkpoint is a database of one file.
type checkpoint struct{}

func (checkpoint) Files() ([]snapshot.LocalFile, error) {
	return []snapshot.LocalFile{{Name: "000001.sst", Size: 4}}, nil
}

func (checkpoint) Open(string) (io.ReaderAt, io.Closer, error) {
	return bytes.NewReader([]byte("rows")), io.NopCloser(nil), nil
}

// A snapshot is made, published by what a progress record lists, read back, and collected around.
func Example() {
	ctx, store := context.Background(), objects.NewMem()
	task := snapshot.Task{App: "shop", Sub: "orders", Partition: 0}
	head := snapshot.Manifest{App: task.App, Sub: task.Sub, Partition: task.Partition, Seq: 42}

	ref, _, stats, err := snapshot.New(store, snapshot.Options{}).Upload(ctx, checkpoint{}, head, nil, nil)
	if err != nil {
		panic(err)
	}
	refs, _ := snapshot.Retain(nil, ref, 3)
	section, err := snapshot.AppendRefs(nil, refs) // what the next progress record carries
	if err != nil {
		panic(err)
	}
	fmt.Println("uploaded files:", stats.Uploaded)

	listed, err := snapshot.DecodeRefs(section)
	if err != nil {
		panic(err)
	}
	m, err := snapshot.Load(ctx, store, listed[0])
	if err != nil {
		panic(err)
	}
	fmt.Println("commit:", m.Seq, "whole:", snapshot.Verify(ctx, store, m, snapshot.Options{}) == nil)

	deleted, _, err := snapshot.Collect(ctx, store, task, listed, time.Now(), snapshot.Grace)
	fmt.Println("deleted:", deleted, err)
	// Output:
	// uploaded files: 1
	// commit: 42 whole: true
	// deleted: 0 <nil>
}
