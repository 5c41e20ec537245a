package processor

import "testing"

// What Kafka's own client gives for these keys (org.apache.kafka.common.utils.UtilsTest).
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string":                       -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
	if got := PartitionOf([]byte("foobar"), 4); got != int32(uint32(0xd0e47bbe&0x7fffffff)%4) {
		t.Errorf("PartitionOf: %d", got)
	}
}
