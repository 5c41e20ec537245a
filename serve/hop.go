package serve

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// hopHeader marks a question that an instance has forwarded. It is answered where it arrives or not at all, so that two
// instances whose maps disagree do not send it back and forth.
const hopHeader = "x-tidemark-hop"

// hopped says whether a question was forwarded.
func hopped(ctx context.Context) bool {
	md, ok := metadata.FromIncomingContext(ctx)
	return ok && len(md.Get(hopHeader)) > 0
}

// hop marks what is called with the context as forwarded.
func hop(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, hopHeader, "1")
}
