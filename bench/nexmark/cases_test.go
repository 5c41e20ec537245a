package nexmark

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidemark/tidemark/tidemarktest"
)

// noon is 2026-01-01T12:00Z.
const noon = start + 12*3_600_000

// at is a bid so many ms after noon.
func at(ms, auction, bidder, price int64) Event {
	return Event{Bid: &Bid{Auction: auction, Bidder: bidder, Price: price, Channel: "c", URL: "https://host/a/b", DateTime: noon + ms, Extra: "cc"}}
}

// What the rules of the package say about the limits, written down by hand: the evaluator and the query agree with it.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		name, query string
		events      []Event
		want        []string // values, in order
	}{
		{"the highest bids of a window share the first place", "q7",
			[]Event{at(0, 1, 1, 700), at(1, 2, 2, 900), at(2, 3, 3, 900), at(10_000, 4, 4, 100)},
			[]string{
				`{"auction":2,"bidder":2,"price":900,"dateTime":1767268800001,"extra":"cc"}`,
				`{"auction":3,"bidder":3,"price":900,"dateTime":1767268800002,"extra":"cc"}`,
				`{"auction":4,"bidder":4,"price":100,"dateTime":1767268810000,"extra":"cc"}`,
			}},
		{"a bid at the end of a window belongs to the next one", "q7",
			[]Event{at(0, 1, 1, 900), at(10_000, 2, 2, 900), at(10_001, 3, 3, 901)},
			[]string{
				`{"auction":1,"bidder":1,"price":900,"dateTime":1767268800000,"extra":"cc"}`,
				`{"auction":3,"bidder":3,"price":901,"dateTime":1767268810001,"extra":"cc"}`,
			}},
		{"auctions share the first place of some windows", "q5",
			[]Event{at(0, 1, 1, 1), at(1999, 2, 1, 1), at(2000, 2, 1, 1)},
			[]string{
				`{"auction":1,"num":1,"starttime":1767268792000,"endtime":1767268802000}`,
				`{"auction":2,"num":1,"starttime":1767268792000,"endtime":1767268802000}`,
				`{"auction":2,"num":2,"starttime":1767268794000,"endtime":1767268804000}`,
				`{"auction":2,"num":2,"starttime":1767268796000,"endtime":1767268806000}`,
				`{"auction":2,"num":2,"starttime":1767268798000,"endtime":1767268808000}`,
				`{"auction":2,"num":2,"starttime":1767268800000,"endtime":1767268810000}`,
				`{"auction":2,"num":1,"starttime":1767268802000,"endtime":1767268812000}`,
			}},
		{"sessions ten seconds apart are two", "q11",
			[]Event{at(0, 1, 2, 1), at(0, 1, 1, 1), at(9_999, 1, 1, 1), at(19_999, 1, 1, 1)},
			[]string{
				`{"bidder":1,"bid_count":2,"starttime":1767268800000,"endtime":1767268819999}`,
				`{"bidder":1,"bid_count":1,"starttime":1767268819999,"endtime":1767268829999}`,
				`{"bidder":2,"bid_count":1,"starttime":1767268800000,"endtime":1767268810000}`,
			}},
		{"the limits of the price", "q14",
			[]Event{at(0, 1, 1, 1_101_321), at(1, 2, 1, 1_101_322), at(2, 3, 1, 55_066_079), at(3, 4, 1, 55_066_080)},
			[]string{
				`{"auction":2,"bidder":1,"price":1000000.376,"bidTimeType":"dayTime","dateTime":1767268800001,"extra":"cc","c_counts":2}`,
				`{"auction":3,"bidder":1,"price":49999999.732,"bidTimeType":"dayTime","dateTime":1767268800002,"extra":"cc","c_counts":2}`,
			}},
		{"the hours between day and night", "q14",
			[]Event{at(-18_000_001, 1, 1, 2e6), at(-18_000_000, 1, 1, 2e6), at(-14_400_000, 1, 1, 2e6), at(24_000_000, 1, 1, 2e6), at(25_200_000, 1, 1, 2e6), at(28_800_000, 1, 1, 2e6)},
			[]string{
				`{"auction":1,"bidder":1,"price":1816000.000,"bidTimeType":"nightTime","dateTime":1767250799999,"extra":"cc","c_counts":2}`,
				`{"auction":1,"bidder":1,"price":1816000.000,"bidTimeType":"otherTime","dateTime":1767250800000,"extra":"cc","c_counts":2}`,
				`{"auction":1,"bidder":1,"price":1816000.000,"bidTimeType":"dayTime","dateTime":1767254400000,"extra":"cc","c_counts":2}`,
				`{"auction":1,"bidder":1,"price":1816000.000,"bidTimeType":"dayTime","dateTime":1767292800000,"extra":"cc","c_counts":2}`,
				`{"auction":1,"bidder":1,"price":1816000.000,"bidTimeType":"otherTime","dateTime":1767294000000,"extra":"cc","c_counts":2}`,
				`{"auction":1,"bidder":1,"price":1816000.000,"bidTimeType":"nightTime","dateTime":1767297600000,"extra":"cc","c_counts":2}`,
			}},
		{"a URL without all directories", "q22",
			[]Event{at(0, 1, 2, 3)},
			[]string{`{"auction":1,"bidder":2,"price":3,"channel":"c","dir1":"a","dir2":"b"}`}},
		{"every 123rd auction", "q2",
			[]Event{at(0, 1230, 1, 5), at(1, 1231, 1, 5), at(2, 0, 1, 6)},
			[]string{`{"auction":1230,"price":5}`, `{"auction":0,"price":6}`}},
		{"a price keeps three places", "q1",
			[]Event{at(0, 1, 1, 1), at(1, 1, 1, 250)},
			[]string{
				`{"auction":1,"bidder":1,"price":0.908,"dateTime":1767268800000,"extra":"cc"}`,
				`{"auction":1,"bidder":1,"price":227.000,"dateTime":1767268800001,"extra":"cc"}`,
			}},
	} {
		t.Run(c.query+" "+c.name, func(t *testing.T) {
			q, err := Find(c.query)
			if err != nil {
				t.Fatal(err)
			}
			values := func(rows []Row) (list []string) {
				for _, r := range rows {
					list = append(list, string(r.Value))
				}
				return list
			}
			if got := values(expected(q, AtOnce(slices.Values(c.events)))); !slices.Equal(got, c.want) {
				t.Errorf("evaluator:\n%q\nwant:\n%q", got, c.want)
			}
			end := Event{Mark: noon + 48*3_600_000}
			rows, _ := drive(t, q, c.events, end, rand.New(rand.NewPCG(1, 1)), tidemarktest.Options{Partitions: 1}, 10, 0)
			if got := values(rows); !slices.Equal(got, c.want) {
				t.Errorf("query:\n%q\nwant:\n%q", got, c.want)
			}
		})
	}
}
