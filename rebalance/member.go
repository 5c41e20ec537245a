package rebalance

import (
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/tidemark/tidemark/internal/wire"
)

// The format versions of user data this build understands, both ways.
const (
	FormatMin = 1
	FormatMax = 1
)

// ErrUserData reports bytes that are not user data of this protocol.
var ErrUserData = errors.New("not user data of this protocol")

// FormatError reports user data in a format version this build does not understand.
type FormatError struct {
	What string // "member" or "assignment"
	Have int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("rebalance: %s data has format version %d, this build understands %d to %d", e.What, e.Have, FormatMin, FormatMax)
}

// MemberData is what a member tells the leader about itself.
type MemberData struct {
	// FormatMin and FormatMax are the user data versions the member understands.
	// Both zero means those of this build.
	FormatMin, FormatMax int
	// Instance is the id kept in the state directory.
	Instance string
	// Endpoint is where the instance answers queries, host:port; may be empty.
	Endpoint string
	// Rack is where the instance runs; may be empty.
	Rack string
	// Workers is the number of workers, hence of transactional ids.
	Workers int
	// TransactionalPrefix is what the instance's transactional ids begin with; worker
	// n of Workers uses TransactionalPrefix + "-" + n.
	TransactionalPrefix string
	// StateFingerprint and BuildFingerprint are those of the member's topology.
	StateFingerprint, BuildFingerprint string
	// Subs holds the sub-topologies the member can run, sorted by id.
	Subs []Sub
}

// Digest stands for a member's user data as the leader heard them.
type Digest uint64

// digest is taken of the bytes as sent, so that a leader can digest what it cannot read.
func digest(userData []byte) Digest {
	h := fnv.New64a()
	_, _ = h.Write(userData)
	return Digest(h.Sum64())
}

// Append appends the encoding in a format version.
//
//	+---------+--------+--------+----------+----------+------+------------+
//	| version | uv min | uv max | instance | endpoint | rack | uv workers |
//	| 1 byte  |        |        |          |          |      |            |
//	+---------+--------+--------+----------+----------+------+------------+
//	| txn prefix | state fingerprint | build fingerprint | subs            |
//	+------------+-------------------+-------------------+-----------------+
//	subs = uv count, then per sub: id, uv topics, topics
//	string = uv length, bytes; topics share text with the topic before (see appendShared)
//
// The first three fields are the same in every version: a leader of any version can
// tell what a member understands.
func (d MemberData) Append(dst []byte, version int) ([]byte, error) {
	if version < FormatMin || version > FormatMax {
		return dst, &FormatError{"member", version}
	}
	lo, hi := d.FormatMin, d.FormatMax
	if lo == 0 && hi == 0 {
		lo, hi = FormatMin, FormatMax
	}
	if lo < 1 || hi < lo || d.Workers < 0 {
		return dst, fmt.Errorf("rebalance: encode member data: formats %d to %d, %d workers", lo, hi, d.Workers)
	}
	dst = append(dst, byte(version))
	dst = wire.AppendUvarint(dst, uint64(lo))
	dst = wire.AppendUvarint(dst, uint64(hi))
	dst = wire.AppendString(dst, d.Instance)
	dst = wire.AppendString(dst, d.Endpoint)
	dst = wire.AppendString(dst, d.Rack)
	dst = wire.AppendUvarint(dst, uint64(d.Workers))
	dst = wire.AppendString(dst, d.TransactionalPrefix)
	dst = wire.AppendString(dst, d.StateFingerprint)
	dst = wire.AppendString(dst, d.BuildFingerprint)
	dst = wire.AppendUvarint(dst, uint64(len(d.Subs)))
	last := ""
	for _, s := range d.Subs {
		dst = wire.AppendString(dst, s.ID)
		dst = wire.AppendUvarint(dst, uint64(len(s.Topics)))
		for _, t := range s.Topics {
			dst = appendShared(dst, last, t)
			last = t
		}
	}
	return dst, nil
}

// DecodeMember parses what Append wrote. Of data in a newer format it returns the
// range the member understands beside a *FormatError.
func DecodeMember(b []byte) (MemberData, error) {
	r := wire.NewReader(b)
	version := int(r.Byte())
	d := MemberData{FormatMin: int(r.Int32()), FormatMax: int(r.Int32())}
	if r.Err() == nil && (d.FormatMin < 1 || d.FormatMin > d.FormatMax) {
		return MemberData{}, fmt.Errorf("rebalance: decode member data: %w: formats %d to %d", ErrUserData, d.FormatMin, d.FormatMax)
	}
	if r.Err() == nil && (version < FormatMin || version > FormatMax) {
		return d, &FormatError{"member", version}
	}
	d.Instance = r.String()
	d.Endpoint = r.String()
	d.Rack = r.String()
	d.Workers = int(r.Int32())
	d.TransactionalPrefix = r.String()
	d.StateFingerprint = r.String()
	d.BuildFingerprint = r.String()
	last := ""
	for range r.Count(2) {
		s := Sub{ID: r.String()}
		for range r.Count(1) {
			last = readShared(r, last)
			s.Topics = append(s.Topics, last)
		}
		d.Subs = append(d.Subs, s)
	}
	return d, closed(r, "member")
}

// closed returns the error of a reader that should be at the end of its input.
func closed(r *wire.Reader, what string) error {
	if err := r.Err(); err != nil {
		return fmt.Errorf("rebalance: decode %s data: %w: %v", what, ErrUserData, err)
	}
	if r.Len() != 0 {
		return fmt.Errorf("rebalance: decode %s data: %w: %d bytes too many", what, ErrUserData, r.Len())
	}
	return nil
}
