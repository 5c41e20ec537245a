package changelog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MetadataVersion is the newest layout of offset metadata this package writes
// and reads.
const MetadataVersion = 1

// MaxMetadata is the longest offset metadata written, in ASCII characters. The
// broker accepts 4,096 UTF-16 units and refuses more for that partition alone.
const MaxMetadata = 4000

// MaxMetadataEnds is the number of changelogs whose ends fit MaxMetadata
// whatever their values are. A task with more stores must be refused at start,
// not at its first long commit.
const MaxMetadataEnds = 280

// ErrMetadata reports offset metadata that this application did not write.
var ErrMetadata = errors.New("not offset metadata of this application")

// Metadata is the text a commit leaves beside each group offset: enough to tell
// after an unclear outcome, or at a take-over, which commit the offset belongs to.
type Metadata struct {
	// Seq and Writer are those of the progress record of the same commit.
	Seq, Writer uint64
	// W is the task's watermark in milliseconds, NoWatermark for none.
	W int64
	// Ends holds the acknowledged end (last acknowledged offset + 1) of every
	// changelog of the task, this commit included, in the order of the
	// sub-topology's stores that have a changelog.
	Ends []int64
}

// Text returns the metadata as ASCII text:
//
//	tm1 <seq> <writer> <W> <end>,<end>,…
//
// Numbers are base 36, a missing list is "-", a missing W is "-". The text is
// canonical: equal metadata give equal text and no other text parses to it. It
// errors when the text would exceed MaxMetadata.
func (m Metadata) Text() (string, error) {
	b := m.appendText(make([]byte, 0, 64+14*len(m.Ends)))
	if len(b) > MaxMetadata {
		return "", fmt.Errorf("changelog: offset metadata of %d changelogs takes %d characters, the limit is %d", len(m.Ends), len(b), MaxMetadata)
	}
	for _, e := range m.Ends {
		if e < 0 {
			return "", fmt.Errorf("changelog: offset metadata: changelog end %d", e)
		}
	}
	return string(b), nil
}

// String returns the text of Text without its limit, for logs.
func (m Metadata) String() string { return string(m.appendText(nil)) }

func (m Metadata) appendText(b []byte) []byte {
	b = append(b, "tm"...)
	b = strconv.AppendInt(b, MetadataVersion, 10)
	b = append(b, ' ')
	b = strconv.AppendUint(b, m.Seq, 36)
	b = append(b, ' ')
	b = strconv.AppendUint(b, m.Writer, 36)
	b = append(b, ' ')
	if m.W == NoWatermark {
		b = append(b, '-')
	} else {
		b = strconv.AppendInt(b, m.W, 36)
	}
	b = append(b, ' ')
	if len(m.Ends) == 0 {
		return append(b, '-')
	}
	for i, e := range m.Ends {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, e, 36)
	}
	return b
}

// ParseMetadata parses the text of a committed offset. Empty text is no metadata:
// ok is false and err nil. The error is ErrMetadata for text of another origin
// and a *VersionError for a layout this build does not know.
func ParseMetadata(text string) (m Metadata, ok bool, err error) {
	if text == "" {
		return Metadata{}, false, nil
	}
	fields := strings.Split(text, " ")
	version, isOurs := strings.CutPrefix(fields[0], "tm")
	v, verr := strconv.ParseUint(version, 10, 16)
	if !isOurs || verr != nil || len(text) > MaxMetadata {
		return Metadata{}, false, metadataError(text)
	}
	if v != MetadataVersion {
		return Metadata{}, false, &VersionError{"metadata", int(v), MetadataVersion, MetadataVersion}
	}
	if len(fields) != 5 {
		return Metadata{}, false, metadataError(text)
	}
	var errs [4]error
	m.Seq, errs[0] = strconv.ParseUint(fields[1], 36, 64)
	m.Writer, errs[1] = strconv.ParseUint(fields[2], 36, 64)
	m.W = NoWatermark
	if fields[3] != "-" {
		m.W, errs[2] = strconv.ParseInt(fields[3], 36, 64)
	}
	if fields[4] != "-" {
		for s := range strings.SplitSeq(fields[4], ",") {
			end, err := strconv.ParseInt(s, 36, 64)
			if err != nil || end < 0 {
				errs[3] = ErrMetadata
			}
			m.Ends = append(m.Ends, end)
		}
	}
	// The comparison refuses every second spelling: capitals, plus signs, leading zeros.
	if errors.Join(errs[:]...) != nil || m.String() != text {
		return Metadata{}, false, metadataError(text)
	}
	return m, true, nil
}

func metadataError(text string) error {
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return fmt.Errorf("changelog: parse offset metadata %q: %w", text, ErrMetadata)
}
