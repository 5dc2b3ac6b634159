// Reads a topic with franz-go's kgo and prints partition and offset of every record: reader SERVERS TOPIC CLIENT_ID.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ConsumeTopics(os.Args[2]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ClientID(os.Args[3]),
		kgo.MetadataMaxAge(2*time.Second),
		kgo.MetadataMinAge(time.Second),
	)
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(os.Stdout)
	for {
		fetches := client.PollFetches(context.Background())
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Fprintln(out, record.Partition, record.Offset)
		})
		out.Flush()
	}
}
