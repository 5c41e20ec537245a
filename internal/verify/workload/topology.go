package workload

import "github.com/tidemark/tidemark/topology"

// The stores of the topology.
const (
	TallyStore   = "tally"
	SumStore     = "sums"
	BalanceStore = "balances"
)

// Topology returns the workloads that have topics, as one topology named app.
func Topology(app string, t Topics) *topology.Topology {
	top := topology.New(app)
	if t.Bank() {
		addBank(top, t)
	}
	if t.Events() {
		addEvents(top, t)
	}
	return top
}

func addBank(top *topology.Topology, t Topics) {
	top.Stream[string, int64](t.SeqIn).
		Aggregate(TallyStore, topology.Fold(Tally.Add)).
		To(t.SeqOut)
	top.Stream[string, int64](t.SumIn).
		Sum(SumStore, func(n int64) int64 { return n }, topology.EveryUpdate()).
		To(t.SumOut)
	top.Stream[string, Transfer](t.BankIn).
		FlatMap(func(x Transfer, emit func(Leg)) {
			for _, l := range x.Legs() {
				emit(l)
			}
		}).
		KeyBy("legs", func(l Leg) int64 { return l.Account }).
		Aggregate(BalanceStore, topology.Fold(Balance.Add), topology.EveryUpdate()).
		To(t.BankOut)
}
