package changelog_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark/changelog"
	"github.com/tidemark/tidemark/internal/embedded"
)

// benchRecords is the size of the log the two benchmarks below read, with keys of 16
// and values of 100 bytes.
const benchRecords = 1_000_000

func benchLog(b *testing.B, partitions int) *embedded.Broker {
	broker, err := embedded.Start(embedded.Options{Topics: map[string]int{"log": partitions}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(broker.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	for i := range benchRecords {
		row := make([]byte, 116)
		binary.BigEndian.PutUint64(row[8:], uint64(i)*0x9e3779b97f4a7c15)
		copy(row[40:], row[8:16])
		cl.Produce(context.Background(), &kgo.Record{Topic: "log", Partition: int32(i % partitions), Key: row[:16], Value: row[16:]}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	return broker
}

// The client and the broker share the process in both: compare them with each other.
func BenchmarkRead(b *testing.B) {
	for _, partitions := range []int{1, 4} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			broker := benchLog(b, partitions)
			r, err := changelog.NewReader(changelog.ReaderConfig{Client: []kgo.Opt{kgo.SeedBrokers(broker.Addrs()...)}})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			var parts []changelog.Partition
			for p := range partitions {
				parts = append(parts, changelog.Partition{Topic: "log", Partition: int32(p), Target: int64(benchRecords / partitions)})
			}
			for b.Loop() {
				n, bytes := 0, 0
				if _, err := r.Read(b.Context(), parts, func(_ int, rec *kgo.Record) error {
					n++
					bytes += len(rec.Key) + len(rec.Value)
					return nil
				}, nil); err != nil || n != benchRecords {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
		})
	}
}

func BenchmarkConsume(b *testing.B) {
	for _, partitions := range []int{1, 4} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			broker := benchLog(b, partitions)
			at := map[int32]kgo.Offset{}
			for p := range partitions {
				at[int32(p)] = kgo.NewOffset().AtStart()
			}
			for b.Loop() {
				cl, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
					kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"log": at}))
				if err != nil {
					b.Fatal(err)
				}
				bytes := 0
				for n := 0; n < benchRecords; {
					cl.PollFetches(b.Context()).EachRecord(func(rec *kgo.Record) {
						n++
						bytes += len(rec.Key) + len(rec.Value)
					})
				}
				cl.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
		})
	}
}
