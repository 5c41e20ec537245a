// Package processor runs the operators of one task: records go in, state writes and output records come out.
//
// A task is a graph of typed closures that package topology builds once per task. Everything here is synchronous and
// belongs to the one goroutine that owns the task, a worker of the engine: the package starts no goroutine, reads no
// clock (the time is part of the record or of Env), and knows neither Kafka nor a database. It must never swallow an
// error: a record that cannot be used comes back as an *Error, and what becomes of it is the caller's policy.
//
// Users of the library meet Context, Record's fields through it, Emitter and Message; the constructors of operators
// (Map, Sink, Aggregate and so on) exist for package topology.
package processor
