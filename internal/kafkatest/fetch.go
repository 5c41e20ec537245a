package kafkatest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

//go:embed files
var files embed.FS

// mavenPlugin copies a project's dependencies; the version is fixed for the same bytes everywhere.
const mavenPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// CacheDir returns where downloaded jars are kept: TIDEMARK_CACHE, or tidemark below
// XDG_CACHE_HOME, or below ~/.cache.
func CacheDir() (string, error) {
	if dir := os.Getenv("TIDEMARK_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tidemark"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("kafkatest: cache directory: %w", err)
	}
	return filepath.Join(home, ".cache", "tidemark"), nil
}

// Fetch makes sure that the broker's jars are in the cache and returns their directory. A cold fetch
// downloads about 45 MB. Concurrent fetches do not disturb each other.
func Fetch(ctx context.Context) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	pom := file("pom.xml")
	version := regexp.MustCompile(`<kafka\.version>(.*)</kafka\.version>`).FindStringSubmatch(pom)[1]
	lib := filepath.Join(cache, "kafka-"+version)
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("kafkatest: fetch Kafka %s: Maven is missing (Debian and Ubuntu: apt-get install maven): %w", version, err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("kafkatest: fetch: %w", err)
	}
	// The directory gets its name when it is complete, so that an interrupted fetch leaves nothing
	// that looks like a cache.
	tmp, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return "", fmt.Errorf("kafkatest: fetch: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "pom.xml"), []byte(pom), 0o644); err != nil {
		return "", fmt.Errorf("kafkatest: fetch: %w", err)
	}
	jars := filepath.Join(tmp, "lib")
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-f", filepath.Join(tmp, "pom.xml"), mavenPlugin,
		"-DincludeScope=runtime", "-DoutputDirectory="+jars)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("kafkatest: fetch Kafka %s with Maven: %w\n%s", version, err, out)
	}
	if err := os.Rename(jars, lib); err != nil {
		if _, other := os.Stat(lib); other != nil {
			return "", fmt.Errorf("kafkatest: fetch: %w", err)
		}
	}
	return lib, nil
}

// findJava returns a java command of version 17 or newer.
func findJava(ctx context.Context) (string, error) {
	name := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		name = filepath.Join(home, "bin", "java")
	}
	const install = "the broker needs Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; or set JAVA_HOME)"
	java, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("kafkatest: %s: %w", install, err)
	}
	out, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kafkatest: %s -version: %w\n%s", java, err, out)
	}
	m := regexp.MustCompile(`version "(\d+)`).FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("kafkatest: %s -version: no version in %q", java, out)
	}
	if major, _ := strconv.Atoi(string(m[1])); major < 17 {
		return "", errors.New("kafkatest: " + java + " is version " + string(m[1]) + ": " + install)
	}
	return java, nil
}

func file(name string) string {
	b, err := files.ReadFile("files/" + name)
	if err != nil {
		panic(err) // the file is part of the package
	}
	return string(b)
}
