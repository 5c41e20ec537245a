package nexmark

import (
	"bytes"
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The input has the proportions of the suite.
func TestDistributions(t *testing.T) {
	o := Options{Events: 100_000, Seed: 3}
	var people, sold, bids, hotItem, hotBidder, hotSeller, hotChannel, withID, urls float64
	var personSize, auctionSize, bidSize, decades float64
	newestAuction, newestPerson := int64(-1), int64(-1)
	size := func(e Event) float64 {
		b, err := Codec().Append(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		return float64(len(b))
	}
	n := int64(0)
	for e := range Generate(o) {
		if want := start + n/10; e.Time() != want {
			t.Fatalf("event %d is of %d, want %d", n, e.Time(), want)
		}
		n++
		switch {
		case e.Person != nil:
			people++
			personSize += size(e)
			if e.Person.ID != firstPerson+newestPerson+1 {
				t.Fatalf("person %d follows %d", e.Person.ID, firstPerson+newestPerson)
			}
			newestPerson++
		case e.Auction != nil:
			sold++
			auctionSize += size(e)
			a := e.Auction
			if a.ID != firstAuction+newestAuction+1 || a.Expires <= a.DateTime || a.Reserve < a.InitialBid || a.Category < 10 || a.Category > 14 {
				t.Fatalf("auction %+v after %d", *a, newestAuction)
			}
			newestAuction++
			if a.Seller == firstPerson+newestPerson/100*100 {
				hotSeller++
			}
		case e.Bid != nil:
			bids++
			bidSize += 32 + float64(len(e.Bid.Extra))
			b := e.Bid
			decades += math.Log10(float64(b.Price) / 100)
			if b.Auction < firstAuction || b.Auction > firstAuction+newestAuction+lead || b.Bidder < firstPerson || b.Bidder > firstPerson+newestPerson+lead {
				t.Fatalf("bid %+v with auctions up to %d, persons up to %d", *b, newestAuction, newestPerson)
			}
			if b.Auction == firstAuction+newestAuction/100*100 {
				hotItem++
			}
			if b.Bidder == firstPerson+newestPerson/100*100+1 {
				hotBidder++
			}
			if !strings.HasPrefix(b.Channel, "channel-") {
				hotChannel++
				continue
			}
			urls++
			if strings.Contains(b.URL, "channel_id=") {
				withID++
			}
		}
	}
	for _, c := range []struct {
		what             string
		got, want, error float64
	}{
		{"persons", people, 2000, 0},
		{"auctions", sold, 6000, 0},
		{"bids", bids, 92_000, 0},
		{"bids for the hot auction", hotItem / bids, 0.5, 0.02},
		{"bids by the hot bidder", hotBidder / bids, 0.75, 0.02},
		{"auctions by the hot seller", hotSeller / sold, 0.75, 0.02},
		{"bids through hot channels", hotChannel / bids, 0.5, 0.02},
		{"URLs with the channel's id", withID / urls, 0.9, 0.02},
		{"bytes of a person", personSize / people, personBytes, 15},
		{"bytes of an auction", auctionSize / sold, auctionBytes, 40},
		{"bytes of a bid without its channel", bidSize / bids, bidBytes, 10},
		{"decades of the price", decades / bids, 3, 0.05},
	} {
		if math.Abs(c.got-c.want) > c.error {
			t.Errorf("%s: %.3f, want %.3f", c.what, c.got, c.want)
		}
	}
}

// Delayed events come after younger ones, by less than the watermark waits, and none is lost.
func TestDelays(t *testing.T) {
	o := Options{Events: 20_000, Seed: 9, Every: time.Millisecond, Delayed: 0.1}
	newest, delayed, n := int64(0), 0, 0
	for e := range Generate(o) {
		n++
		if e.Time() < newest {
			delayed++
		}
		if newest-e.Time() >= patience.Milliseconds() {
			t.Fatalf("an event of %d comes after %d", e.Time(), newest)
		}
		newest = max(newest, e.Time())
	}
	if n != o.Events || delayed < 1800 || delayed > 2200 {
		t.Errorf("%d of %d events are late", delayed, n)
	}
	if a, b := slices.Collect(Generate(o)), slices.Collect(Generate(o)); !reflect.DeepEqual(a, b) {
		t.Error("the same options give other events")
	}
	other := o
	other.Seed++
	if a, b := slices.Collect(Generate(o)), slices.Collect(Generate(other)); reflect.DeepEqual(a, b) {
		t.Error("another seed gives the same events")
	}
}

// Encoded events are read back, and nothing else is.
func TestCodec(t *testing.T) {
	c := Codec()
	o := Options{Events: 500, Seed: 1}
	events := append(slices.Collect(Generate(o)), End(o), Event{Bid: &Bid{}}, Event{Auction: &Auction{}}, Event{Person: &Person{}}, Event{})
	for _, e := range events {
		b, err := c.Append([]byte("x"), e)
		if err != nil {
			t.Fatal(err)
		}
		b = b[1:]
		got, err := c.Decode(b)
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%+v became %+v, %v", e, got, err)
		}
		if again, _ := c.Append(nil, got); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
		if _, err := c.JSON(nil, b); err != nil {
			t.Fatal(err)
		}
		if e.Bid == nil || e.Bid.Auction == 0 {
			continue
		}
		for n := range 12 { // beyond the head any length is a text
			if _, err := c.Decode(b[:n]); err == nil {
				t.Fatalf("%x is read", b[:n])
			}
		}
	}
	for _, bad := range []string{"", "00", "05", "0400ff", "03"} {
		b, err := hex.DecodeString(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Decode(b); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// The encoding of events is that of inputs that are already written.
func TestCodecBytes(t *testing.T) {
	b, err := Codec().Append(nil, Event{Bid: &Bid{Auction: 1, Bidder: 2, Price: 300, Channel: "c", URL: "url", DateTime: 64, Extra: "xy"}})
	if got, want := hex.EncodeToString(b), "038001"+"02"+"04"+"d804"+"01"+"03"+hex.EncodeToString([]byte("curlxy")); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestDecimal(t *testing.T) {
	for n, want := range map[Decimal]string{0: "0.000", 7: "0.007", -1: "-0.001", 1234567: "1234.567", -90010: "-90.010"} {
		b, err := json.Marshal(n)
		if err != nil || string(b) != want {
			t.Errorf("%d: %s, %v, want %s", int64(n), b, err, want)
		}
		var back Decimal
		if err := json.Unmarshal(b, &back); err != nil || back != n {
			t.Errorf("%s: %d, %v", b, int64(back), err)
		}
	}
	for _, bad := range []string{"1", `"1.000"`, "1.0000", "1e3", "null"} {
		var n Decimal
		if err := json.Unmarshal([]byte(bad), &n); err == nil {
			t.Errorf("%s is %d", bad, int64(n))
		}
	}
}

// A digest is that of the rows in any order, and of no others.
func TestDigest(t *testing.T) {
	seed := maphash.MakeSeed()
	sum := func(rows ...Row) (d Digest) {
		for _, r := range rows {
			d.Add(seed, r)
		}
		return d
	}
	a, b := Row{nil, 1, []byte("v")}, Row{[]byte("v"), 1, nil}
	if sum(a, b) != sum(b, a) {
		t.Error("the order counts")
	}
	seen := map[string]bool{}
	for _, d := range []Digest{sum(), sum(a), sum(b), sum(a, a), sum(a, b), sum(Row{[]byte{}, 1, []byte("v")}), sum(Row{nil, 2, []byte("v")})} {
		seen[fmt.Sprint(d)] = true
	}
	if len(seen) != 7 {
		t.Errorf("%d digests of 7", len(seen))
	}
}

func TestPeriods(t *testing.T) {
	bids := []Event{at(0, 1, 7, 1), at(0, 1, 7, 1), at(0, 1, 8, 1), {Mark: 5}}
	row := func(bidder, n, start int64) Row {
		return Row{number(bidder), start + 10_000, activityJSON(bidder, n, start, start+10_000)}
	}
	for _, c := range []struct {
		name string
		rows []Row
		ok   bool
	}{
		{"right", []Row{row(7, 1, 0), row(8, 1, 10_000), row(7, 1, 20_000)}, true},
		{"one is missing", []Row{row(7, 1, 0), row(8, 1, 10_000)}, false},
		{"one too many", []Row{row(7, 1, 0), row(8, 1, 10_000), row(7, 2, 20_000)}, false},
		{"twice", []Row{row(7, 1, 0), row(8, 1, 10_000), row(7, 1, 0)}, false},
		{"another bidder", []Row{row(7, 2, 0), row(8, 1, 10_000), row(9, 1, 0)}, false},
		{"not aligned", []Row{row(7, 2, 5), row(8, 1, 10_000)}, false},
		{"another key", []Row{row(7, 2, 0), {number(9), 10_000, row(8, 1, 0).Value}}, false},
		{"no JSON", []Row{row(7, 2, 0), {number(8), 10_000, []byte("x")}}, false},
	} {
		p := NewPeriods(slices.Values(bids))
		for _, r := range c.rows {
			p.Add(r)
		}
		if err := p.Finish(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
