package nexmark

import (
	"encoding/json/v2"
	"fmt"

	"github.com/tidemark/tidemark/codec"
	"github.com/tidemark/tidemark/internal/wire"
)

// The kinds of encoded events.
const (
	kindPerson byte = iota + 1
	kindAuction
	kindBid
	kindMark
)

// Codec returns the compact codec of events:
//
//	| kind | numbers, varints | lengths of all texts but the last, uvarints | texts |
//
// The numbers begin with the time; the other fields are in the order of the structs.
func Codec() codec.Codec[Event] { return eventCodec{} }

type eventCodec struct{}

func (eventCodec) Append(dst []byte, e Event) ([]byte, error) {
	switch {
	case e.Bid != nil:
		b := e.Bid
		dst = numbers(append(dst, kindBid), b.DateTime, b.Auction, b.Bidder, b.Price)
		dst = texts(dst, b.Channel, b.URL, b.Extra)
	case e.Auction != nil:
		a := e.Auction
		dst = numbers(append(dst, kindAuction), a.DateTime, a.ID, a.InitialBid, a.Reserve, a.Expires, a.Seller, a.Category)
		dst = texts(dst, a.ItemName, a.Description, a.Extra)
	case e.Person != nil:
		p := e.Person
		dst = numbers(append(dst, kindPerson), p.DateTime, p.ID)
		dst = texts(dst, p.Name, p.Email, p.CreditCard, p.City, p.State, p.Extra)
	default:
		dst = numbers(append(dst, kindMark), e.Mark)
	}
	return dst, nil
}

func numbers(dst []byte, list ...int64) []byte {
	for _, n := range list {
		dst = wire.AppendVarint(dst, n)
	}
	return dst
}

func texts(dst []byte, list ...string) []byte {
	for _, s := range list[:len(list)-1] {
		dst = wire.AppendUvarint(dst, uint64(len(s)))
	}
	for _, s := range list {
		dst = append(dst, s...)
	}
	return dst
}

func (eventCodec) Decode(b []byte) (e Event, err error) {
	r := wire.NewReader(b)
	whole := true
	switch kind := r.Byte(); kind {
	case kindBid:
		v := &Bid{DateTime: r.Varint(), Auction: r.Varint(), Bidder: r.Varint(), Price: r.Varint()}
		whole = cut(r, &v.Channel, &v.URL, &v.Extra)
		e.Bid = v
	case kindAuction:
		v := &Auction{
			DateTime: r.Varint(), ID: r.Varint(), InitialBid: r.Varint(), Reserve: r.Varint(),
			Expires: r.Varint(), Seller: r.Varint(), Category: r.Varint(),
		}
		whole = cut(r, &v.ItemName, &v.Description, &v.Extra)
		e.Auction = v
	case kindPerson:
		v := &Person{DateTime: r.Varint(), ID: r.Varint()}
		whole = cut(r, &v.Name, &v.Email, &v.CreditCard, &v.City, &v.State, &v.Extra)
		e.Person = v
	case kindMark:
		e.Mark = r.Varint()
		whole = r.Len() == 0
	default:
		whole = false
	}
	if !whole || r.Err() != nil {
		return Event{}, fmt.Errorf("nexmark: event of %d bytes: %w", len(b), codec.ErrMalformed)
	}
	return e, nil
}

// cut reads the texts of an event, which share one allocation.
func cut(r *wire.Reader, fields ...*string) bool {
	var lengths [8]int
	last := len(fields) - 1
	for i := range last {
		lengths[i] = r.Count(1)
	}
	rest := string(r.Bytes(r.Len()))
	for i, f := range fields[:last] {
		n := lengths[i]
		if n > len(rest) {
			return false
		}
		*f, rest = rest[:n], rest[n:]
	}
	*fields[last] = rest
	return true
}

func (c eventCodec) JSON(dst, b []byte) ([]byte, error) {
	e, err := c.Decode(b)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("nexmark: event: %w", err)
	}
	return append(dst, text...), nil
}

func (eventCodec) Schema() string { return "nexmark-event-1" }
func (eventCodec) Aliases() bool  { return false }
