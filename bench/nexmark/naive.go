package nexmark

import (
	"fmt"
	"strconv"
	"strings"
)

// The evaluators of queries without state write JSON by hand: fields in their order, no white space. Texts of events are
// letters and what needs no escape.

func naivePassThrough(input arrivals, emit func(Row)) {
	for _, e := range input {
		if b := e.Bid; b != nil {
			emit(Row{nil, b.DateTime, offerJSON(b)})
		}
	}
}

func offerJSON(b *Bid) []byte {
	return fmt.Appendf(nil, `{"auction":%d,"bidder":%d,"price":%d,"dateTime":%d,"extra":"%s"}`, b.Auction, b.Bidder, b.Price, b.DateTime, b.Extra)
}

// euro writes 0.908 of a price, by the digits of the product.
func euro(price int64) string {
	digits := fmt.Sprintf("%04d", price*908)
	return digits[:len(digits)-3] + "." + digits[len(digits)-3:]
}

func naiveConvert(input arrivals, emit func(Row)) {
	for _, e := range input {
		if b := e.Bid; b != nil {
			emit(Row{nil, b.DateTime, fmt.Appendf(nil, `{"auction":%d,"bidder":%d,"price":%s,"dateTime":%d,"extra":"%s"}`,
				b.Auction, b.Bidder, euro(b.Price), b.DateTime, b.Extra)})
		}
	}
}

func naiveSelection(input arrivals, emit func(Row)) {
	for _, e := range input {
		if b := e.Bid; b != nil && b.Auction-b.Auction/123*123 == 0 {
			emit(Row{nil, b.DateTime, fmt.Appendf(nil, `{"auction":%d,"price":%d}`, b.Auction, b.Price)})
		}
	}
}

func naiveCalculate(input arrivals, emit func(Row)) {
	for _, e := range input {
		b := e.Bid
		if b == nil {
			continue
		}
		// 0.908 of the price is above a million from 1101321.6 on and below 50 millions up to 55066079.3.
		if b.Price < 1_101_322 || b.Price > 55_066_079 {
			continue
		}
		kind := "otherTime"
		switch b.DateTime / 3_600_000 % 24 {
		case 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18:
			kind = "dayTime"
		case 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6:
			kind = "nightTime"
		}
		cs := 0
		for _, r := range b.Extra {
			if r == 'c' {
				cs++
			}
		}
		emit(Row{nil, b.DateTime, fmt.Appendf(nil, `{"auction":%d,"bidder":%d,"price":%s,"bidTimeType":"%s","dateTime":%d,"extra":"%s","c_counts":%d}`,
			b.Auction, b.Bidder, euro(b.Price), kind, b.DateTime, b.Extra, cs)})
	}
}

func naiveSplitURL(input arrivals, emit func(Row)) {
	for _, e := range input {
		b := e.Bid
		if b == nil {
			continue
		}
		v := fmt.Appendf(nil, `{"auction":%d,"bidder":%d,"price":%d,"channel":"%s"`, b.Auction, b.Bidder, b.Price, b.Channel)
		for i, part := range strings.Split(b.URL, "/") {
			if i >= 3 && i <= 5 && part != "" {
				v = append(v, `,"dir`+strconv.Itoa(i-2)+`":"`+part+`"`...)
			}
		}
		emit(Row{nil, b.DateTime, append(v, '}')})
	}
}
