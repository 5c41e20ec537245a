package changelog

import "github.com/twmb/franz-go/pkg/kgo"

// StateHeader is the key of the header of a changelog record that carries what a row holds beside its value: the pane
// state of a window, the time until which a row is good.
const StateHeader = "tm-s"

// HeaderOf returns the value of the first header of that key, nil if there is none.
func HeaderOf(r *kgo.Record, key string) []byte {
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			if r.Headers[i].Value == nil {
				return []byte{}
			}
			return r.Headers[i].Value
		}
	}
	return nil
}
