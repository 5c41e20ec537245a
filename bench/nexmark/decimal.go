package nexmark

import (
	"encoding/json/jsontext"
	"fmt"
	"strconv"
	"strings"
)

// Decimal is an exact decimal number with three places, in thousandths. In JSON it is a number with all three.
type Decimal int64

// decimals is one.
const decimals = 1000

// MarshalJSONTo writes the number.
func (d Decimal) MarshalJSONTo(enc *jsontext.Encoder) error {
	b := enc.AvailableBuffer()
	n := uint64(d)
	if d < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendUint(b, n/decimals, 10)
	places := n % decimals
	return enc.WriteValue(append(b, '.', '0'+byte(places/100), '0'+byte(places/10%10), '0'+byte(places%10)))
}

// UnmarshalJSONFrom reads a number as MarshalJSONTo writes it.
func (d *Decimal) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	whole, places, _ := strings.Cut(string(v), ".")
	n, err := strconv.ParseInt(whole+places, 10, 64)
	if err != nil || len(places) != 3 {
		return fmt.Errorf("nexmark: %s is no decimal with three places", v)
	}
	*d = Decimal(n)
	return nil
}
