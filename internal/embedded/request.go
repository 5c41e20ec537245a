package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Request is one request on its way to a broker, as an interceptor sees it.
type Request struct {
	Client  string // name given to Network.Dialer
	Broker  string // address dialed
	Key     int16  // Kafka's API key, for instance kmsg.EndTxn.Int16()
	Version int16

	correlation int32
	frame       []byte
}

// Verdict is what happens to a request. The zero value lets it pass.
type Verdict struct {
	// Delay is how much later the broker sees the request. Requests of one connection keep their
	// order, so those behind it wait too.
	Delay time.Duration
	// ReplyDelay is how much later the client sees the reply. The broker goes on meanwhile.
	ReplyDelay time.Duration
	// CutRequest resets the connection before the broker sees the request.
	CutRequest bool
	// CutReply resets the connection when the broker answers: the request has taken effect, and the
	// client does not know.
	CutReply bool
}

func parseHeader(frame []byte) (Request, bool) {
	if len(frame) < 12 {
		return Request{}, false
	}
	return Request{
		Key:         int16(binary.BigEndian.Uint16(frame[4:])),
		Version:     int16(binary.BigEndian.Uint16(frame[6:])),
		correlation: int32(binary.BigEndian.Uint32(frame[8:])),
		frame:       frame,
	}, true
}

// Parse decodes the request. The result may alias bytes that are still to be sent: read it only, and
// only during the interceptor's call.
func (r Request) Parse() (kmsg.Request, error) {
	req := kmsg.RequestForKey(r.Key)
	if req == nil {
		return nil, fmt.Errorf("embedded: parse request: unknown key %d", r.Key)
	}
	req.SetVersion(r.Version)
	in := kbin.Reader{Src: r.frame[12:]}
	in.NullableString() // client id
	if req.IsFlexible() {
		kmsg.SkipTags(&in)
	}
	if err := req.ReadFrom(in.Src); err != nil {
		return nil, fmt.Errorf("embedded: parse request: key %d version %d: %w", r.Key, r.Version, err)
	}
	return req, nil
}
