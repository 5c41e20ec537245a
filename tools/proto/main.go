// Command proto generates the Go code and the OpenAPI document of the query API from its proto file, with the plugins that
// this module's go.mod pins. It needs no protoc: the compiler is a library. The module is one of its own, so that the
// versions of generators do not bind those who import Tidemark.
//
//	go generate ./serve/api/v1
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	_ "google.golang.org/genproto/googleapis/api/annotations" // google/api/annotations.proto
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	dir  = "../../serve/api/v1"
	name = "tidemark/v1/queries.proto"
)

// plugins and their options.
var plugins = []struct{ tool, options string }{
	{"protoc-gen-go", "paths=source_relative"},
	{"protoc-gen-go-grpc", "paths=source_relative"},
	{"protoc-gen-grpc-gateway", "paths=source_relative"},
	{"protoc-gen-openapiv2", "json_names_for_fields=false,disable_default_errors=true,simple_operation_ids=true,preserve_rpc_order=true"},
}

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "proto:", err)
		os.Exit(1)
	}
}

// find resolves imports: ours from its directory, others from what the generators' libraries carry.
func find(path string) (protocompile.SearchResult, error) {
	if path == name {
		text, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		return protocompile.SearchResult{Source: bytes.NewReader(text)}, err
	}
	d, err := protoregistry.GlobalFiles.FindFileByPath(path)
	if err != nil {
		return protocompile.SearchResult{}, err
	}
	return protocompile.SearchResult{Proto: protodesc.ToFileDescriptorProto(d)}, nil
}

func generate() error {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(protocompile.ResolverFunc(find)),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(context.Background(), name)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{name}}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	add(files[0])
	for _, p := range plugins {
		request.Parameter = proto.String(p.options)
		if err := run(p.tool, request); err != nil {
			return fmt.Errorf("%s: %w", p.tool, err)
		}
	}
	return nil
}

// run runs one plugin and writes its files.
func run(tool string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", tool)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, f := range response.File {
		content := []byte(f.GetContent())
		if filepath.Ext(f.GetName()) == ".json" {
			if content, err = document(content); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f.GetName())), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
