package engine

// A Point names a place of the protocol where the crash tests kill the process. The K numbers are those of
// the crash matrix, the step numbers those of docs/architecture.md.
type Point string

// The crash points.
const (
	K1  Point = "K1"  // step 1: records are queued, none processed
	K2  Point = "K2"  // step 1: in the middle of a batch, state written
	K3  Point = "K3"  // step 2: part of the changelog and output records handed to the producer
	K4  Point = "K4"  // step 3: flushed, offsets not sent
	K5  Point = "K5"  // step 4: offsets sent, EndTxn not
	K6  Point = "K6"  // step 5: EndTxn answered or lost, the answer not looked at
	K7  Point = "K7"  // step 6: committed, nothing applied to the store
	K8  Point = "K8"  // step 6: in the middle of writing the committed layer
	K9  Point = "K9"  // step 6: layer written, not yet acknowledged
	K10 Point = "K10" // snapshot: the checkpoint is made, nothing uploaded
	K11 Point = "K11" // snapshot: files are uploaded, the manifest is not
	K12 Point = "K12" // snapshot: the manifest is uploaded, no commit names it
	K13 Point = "K13" // snapshot: in the middle of deleting old ones
	K14 Point = "K14" // restore: in the middle of fetching a snapshot
	K15 Point = "K15" // restore: in the middle of the replay
	K17 Point = "K17" // revoke callback, before the final commit
	K0  Point = "K0"  // before the first commit of a task, after it became active
	// K17b is the revoke callback after the final commit, before it returns.
	K17b Point = "K17b"
	// K17c is the lost callback, before the leases end: the client's group metadata is empty already.
	K17c Point = "K17c"
	// K4b is step 4 between reading the group metadata and the look at the leases.
	K4b Point = "K4b"
)
