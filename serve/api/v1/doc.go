// Package apiv1 is the query API of Tidemark as gRPC and grpc-gateway have it, generated from queries.proto, and its OpenAPI
// document. It holds no logic.
package apiv1

import _ "embed" // for the document

//go:generate go run -C ../../../tools/proto .

// OpenAPI is the OpenAPI 2 document of the REST front, as JSON.
//
//go:embed queries.swagger.json
var OpenAPI []byte
