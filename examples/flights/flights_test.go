package main

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tidemark/tidemark"
	"github.com/tidemark/tidemark/internal/embedded"
)

// plain computes the table with a loop over the file.
func plain(t *testing.T, file []byte) (carriers, routes map[string]Totals) {
	t.Helper()
	carriers, routes = map[string]Totals{}, map[string]Totals{}
	err := readFlights(bytes.NewReader(file), func(f Flight) error {
		for _, x := range []struct {
			m map[string]Totals
			k string
		}{{carriers, f.Carrier}, {routes, f.Route()}} {
			c := x.m[x.k]
			c.Flights++
			if f.Delay != nil {
				c.Departed++
				c.DelayMin += *f.Delay
			}
			x.m[x.k] = c
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return carriers, routes
}

// output is what -json prints.
type output struct {
	totals map[string][]line
	hours  []hour
	late   []late
}

func parse(t *testing.T, out []byte) output {
	t.Helper()
	o := output{totals: map[string][]line{}}
	for text := range bytes.Lines(out) {
		var l line
		var h hour
		var x late
		err := json.Unmarshal(text, &l)
		switch l.By {
		case "hour":
			err = json.Unmarshal(text, &h)
			o.hours = append(o.hours, h)
		case "late":
			err = json.Unmarshal(text, &x)
			o.late = append(o.late, x)
		default:
			o.totals[l.By] = append(o.totals[l.By], l)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func lines(by string, m map[string]Totals) (out []line) {
	for _, k := range byFlights(m) {
		out = append(out, line{by, k, m[k].Flights, m[k].Departed, m[k].MeanDelay()})
	}
	return out
}

func TestSameAsPlainLoop(t *testing.T) {
	carriers, routes := plain(t, departures)
	want := map[string][]line{"carrier": lines("carrier", carriers), "route": lines("route", routes)}
	// The figures the data set is known for.
	for carrier, n := range map[string]int64{"B6": 1241, "UA": 1223, "EV": 1032, "DL": 978, "HA": 8} {
		if carriers[carrier].Flights != n {
			t.Errorf("%s has %d flights, want %d", carrier, carriers[carrier].Flights, n)
		}
	}
	one, _ := loop(t, departures, 1)
	if len(one.hours) != 827 || len(one.late) != 33 {
		t.Errorf("the loop makes %d panes and %d late flights, want 827 and 33", len(one.hours), len(one.late))
	}
	for _, partitions := range []int{1, 4} {
		var out bytes.Buffer
		if err := run(t.Context(), options{app: "flights", partitions: partitions, json: true}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		got := parse(t, out.Bytes())
		if diff := cmp.Diff(want, got.totals); diff != "" {
			t.Errorf("%d partitions: -loop +tidemark:\n%s", partitions, diff)
		}
		compareHours(t, departures, partitions, got)
	}
}

// The program ends in the middle of loading and counting, and is started again on what it left behind.
func TestInterrupted(t *testing.T) {
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	o := options{app: "flights", brokers: strings.Join(b.Addrs(), ","), partitions: 2, state: t.TempDir(), json: true}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := createTopics(t.Context(), kadm.NewClient(cl), o.app, o.partitions); err != nil {
		t.Fatal(err)
	}

	// The loader breaks off in the middle of the file: what it has handed to the client may arrive or not.
	errTorn := errors.New("torn")
	torn := io.MultiReader(bytes.NewReader(departures[:len(departures)/2]), errReader{errTorn})
	if _, err := load(t.Context(), cl, torn, o.app, 0); !errors.Is(err, errTorn) {
		t.Fatalf("torn file: %v", err)
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	// The app counts some of that.
	app, err := tidemark.New(flightTotals(o.app), tidemark.Config{
		Brokers: b.Addrs(), StateDir: o.state, CommitInterval: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Run(context.Background()) }()
	if err := follow(t.Context(), o.app, func(r results) bool {
		carriers, _ := r.flights()
		return carriers == 0
	}, kgo.SeedBrokers(b.Addrs()...)); err != nil {
		t.Fatal(err)
	}
	app.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	carriers, routes := plain(t, departures)
	want := map[string][]line{"carrier": lines("carrier", carriers), "route": lines("route", routes)}
	for _, life := range []string{"second", "third"} { // the third finds everything done
		var out bytes.Buffer
		if err := run(t.Context(), o, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		got := parse(t, out.Bytes())
		if diff := cmp.Diff(want, got.totals); diff != "" {
			t.Errorf("%s life: -loop +tidemark:\n%s", life, diff)
		}
		compareHours(t, departures, o.partitions, got)
	}
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), inputTopic(o.app))
	if err != nil {
		t.Fatal(err)
	}
	var held, rows int64
	ends.Each(func(l kadm.ListedOffset) { held += l.Offset })
	for _, c := range carriers {
		rows += c.Flights
	}
	if held != rows {
		t.Errorf("the input topic holds %d records, the file %d rows", held, rows)
	}
}

func TestBadFiles(t *testing.T) {
	const header = "scheduled_at,carrier,flight,origin,dest,dep_delay_min\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "header"},
		"columns":  {"scheduled_at,carrier\n", `no column "flight"`},
		"time":     {header + "yesterday,UA,1,EWR,IAH,2\n", "line 2"},
		"delay":    {header + "2013-01-01T10:15:00Z,UA,1,EWR,IAH,late\n", "line 2"},
		"seen":     {"seen_at," + header + "at noon,2013-01-01T10:15:00Z,UA,1,EWR,IAH,2\n", "line 2"},
		"too few":  {header + "2013-01-01T10:15:00Z,UA\n", "wrong number of fields"},
		"no delay": {header + "2013-01-01T10:15:00Z,UA,1,EWR,IAH,\n", ""},
	} {
		err := readFlights(strings.NewReader(c.text), func(Flight) error { return nil })
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
