package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// format writes the broker's configuration and, for a new directory, its storage format.
func (b *Broker) format(ctx context.Context) error {
	properties := b.opts.properties(file("server.properties"), b.port, b.ctrl, b.DataDir())
	for name, text := range map[string]string{"server.properties": properties, "log4j2.properties": file("log4j2.properties")} {
		if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("kafkatest: format: %w", err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.DataDir(), "meta.properties")); err == nil {
		return nil
	}
	var id [16]byte
	rand.Read(id[:])
	id[0] &= 0x7f // a leading dash of the text form would look like an option
	args := append([]string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, b.common()...)
	args = append(args, "kafka.tools.StorageTool", "format", "--standalone",
		"-t", base64.RawURLEncoding.EncodeToString(id[:]), "-c", b.path("server.properties"))
	if v := b.opts.TransactionVersion; v != 0 {
		args = append(args, "--feature", "transaction.version="+strconv.Itoa(v))
	}
	if out, err := exec.CommandContext(ctx, b.java, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("kafkatest: format %s: %w\n%s", b.DataDir(), err, out)
	}
	return nil
}

// choosePorts returns the ports of the client and the controller listener: those of an earlier start
// on the same data as far as the options leave it open, else free ones.
func choosePorts(o Options) (port, controller int, err error) {
	if text, err := os.ReadFile(filepath.Join(o.Dir, "server.properties")); err == nil {
		if m := regexp.MustCompile(`(?m)^listeners=.*:(\d+),.*:(\d+)$`).FindSubmatch(text); m != nil {
			port, _ = strconv.Atoi(string(m[1]))
			controller, _ = strconv.Atoi(string(m[2]))
		}
	}
	if o.Port != 0 {
		port = o.Port
	}
	// Both listeners are open at the same time, else they could get the same port.
	for _, p := range []*int{&port, &controller} {
		if *p != 0 {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, 0, fmt.Errorf("kafkatest: free port: %w", err)
		}
		defer l.Close()
		*p = l.Addr().(*net.TCPAddr).Port
	}
	return port, controller, nil
}
