// Package topology is the language streams, tables and custom processors are declared in, and the graph that comes out.
//
// A Topology is declared with typed, fluent calls, once, by one goroutine, and Build turns it into a Plan: sub-topologies
// cut at repartition topics, the topics and stores of each, and a constructor of running tasks. Building is pure: the
// package opens no connection, starts no goroutine, and knows neither Kafka nor a database. It must never invent a name
// for anything with state: ids are the user's, because topics and stores are found by them for years.
//
// # Rules
//
// Ids. Every stateful operator and every repartition takes its id as its first argument. Ids are unique within a
// topology. Operators without state are named in errors and descriptions by kind and number, as in "filter#2".
//
// Cuts. A KeyBy on whose path a stateful operator or a processor with stores follows writes to a repartition topic, and
// everything behind it runs in another sub-topology. Any other KeyBy only sets the key.
//
// Keys. Only KeyBy and Process change keys. A null key is fine until an operator needs one: aggregates, tables and
// processors with stores refuse the record (stage null-key). Long forms and KeyBy functions see the key type's null or,
// if it has none, its zero value; Context.KeyBytes tells a null key from an empty one.
//
// Null values. A type whose codec is codec.Nullable carries a null as itself: a nil []byte, pointer or message. It is a
// value like any other: functions get it, Count counts it, To writes it as null. For any other type a null in a source
// stream is an error (stage null-value). In a table a null is a delete.
//
// Bytes. What no operator uses is not decoded: a stream that is only filtered by value never decodes its keys, and a
// Count decodes neither. What no operator changes is not encoded again: it leaves as the bytes it came in, if the codec
// is the same. Values are immutable once they are handed over: change a copy.
//
// Headers. Headers travel with the record through every operator and topic; long forms and processors may add some.
// Results of aggregates have none, since they come from many records.
//
// Time. Records keep their timestamp. The result of an aggregate has the maximum of the record's and of the result
// before it. By default an aggregate emits the latest result per key at each commit; EveryUpdate makes it emit each.
package topology
