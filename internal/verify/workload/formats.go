package workload

import "slices"

// Topics are the names of the topics of one run. A run has the workloads whose topics have names.
type Topics struct {
	SeqIn, SeqOut, SumIn, SumOut, BankIn, BankOut string

	EventsIn, OnceOut, PanesOut string
	Late, Dead                  string // what the engine refuses
}

// Named returns the topics of the run with that prefix, without the workload events.
func Named(prefix string) Topics {
	return Topics{
		SeqIn: prefix + "-seq-in", SeqOut: prefix + "-seq-out", SumIn: prefix + "-sum-in", SumOut: prefix + "-sum-out",
		BankIn: prefix + "-bank-in", BankOut: prefix + "-bank-out",
	}
}

// WithEvents adds the workload events to a run of the application with that id. Undecodable events need the policy that
// makes dead letters of them.
func (t Topics) WithEvents(prefix, app string) Topics {
	t.EventsIn, t.OnceOut, t.PanesOut = prefix+"-events-in", prefix+"-events-once", prefix+"-panes-out"
	t.Late, t.Dead = app+"-late", app+"-dead-letter"
	return t
}

// Bank says whether the run has the workloads seq, sum and bank.
func (t Topics) Bank() bool { return t.BankIn != "" }

// Events says whether the run has the workload events.
func (t Topics) Events() bool { return t.EventsIn != "" }

// All returns every topic.
func (t Topics) All() []string { return append(t.Inputs(), t.Outputs()...) }

// Inputs returns the input topics.
func (t Topics) Inputs() []string { return named(t.SeqIn, t.SumIn, t.BankIn, t.EventsIn) }

// Outputs returns the output topics.
func (t Topics) Outputs() []string {
	return named(t.SeqOut, t.SumOut, t.BankOut, t.OnceOut, t.PanesOut, t.Late, t.Dead)
}

func named(topics ...string) []string {
	return slices.DeleteFunc(topics, func(t string) bool { return t == "" })
}

// Tally is what seq knows of a key: with nothing lost and nothing doubled Count equals Max, and Xor is the
// checksum of 1..Max.
type Tally struct {
	Count, Max int64
	Xor        uint64
}

// Add counts one number.
func (t Tally) Add(n int64) Tally {
	return Tally{t.Count + 1, max(t.Max, n), t.Xor ^ Hash(n)}
}

// Hash spreads a number (the finalizer of SplitMix64).
func Hash(n int64) uint64 {
	x := uint64(n) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Transfer moves Amount from one account to another. ID is unique in a run.
type Transfer struct {
	ID, From, To, Amount int64
}

// Leg is one side of a transfer.
type Leg struct {
	Transfer, Account, Amount int64
}

// Legs returns both sides; their amounts add up to zero.
func (t Transfer) Legs() [2]Leg {
	return [2]Leg{{t.ID, t.From, -t.Amount}, {t.ID, t.To, t.Amount}}
}

// Balance is an account after a leg: the sum of all legs so far, their number, and the last one.
type Balance struct {
	Sum, Count       int64
	Transfer, Amount int64
}

// Add books a leg.
func (b Balance) Add(l Leg) Balance {
	return Balance{b.Sum + l.Amount, b.Count + 1, l.Transfer, l.Amount}
}
