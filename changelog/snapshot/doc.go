// Package snapshot keeps copies of a task's database in an object store, so that a restore need not replay a
// whole changelog. A snapshot is a manifest plus the files it names, each stored under the SHA-256 of its bytes:
//
//	<app>/<sub>/<partition>/sst/<sha256 of the file>
//	<app>/<sub>/<partition>/manifest/<seq>-<sha256 of the manifest>
//
// The rules that keep it right, whatever crashes and whoever still runs that should not:
//
//  1. The manifest is put last. What it names is there.
//  2. Only the key of a manifest, a Ref, makes a snapshot count, and Refs travel in the progress records of the
//     task, inside its transactions. Nobody else can publish one, and no listing of a store is ever trusted.
//  3. Every byte is verified before it counts: a manifest by its own key, a file by the sum in the manifest.
//  4. A file is reused only if a retained manifest of the same task names its content. Names of files are
//     never compared: two databases give one name to different files.
//  5. What may be deleted follows from the manifests that are retained, all of which must be readable. Age only
//     protects what is not published yet; it never makes anything garbage.
//
// A snapshot only speeds a restore up. Losing all of them loses nothing, and no failure here may stop a task.
//
// It must never know Kafka or the database behind the files, never write to a task's state, and never log or
// retry: it returns what happened. Retain, Garbage, Judge, Estimate, Choose and the codecs are pure functions.
// Upload, Load, Download, Collect and SweepApp do I/O on the caller's goroutine and on others that have ended
// when they return.
package snapshot
