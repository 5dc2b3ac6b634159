// Sends numbered records for a while with the defaults of franz-go or sarama: outage franz-go|sarama|patient-sarama SERVERS TOPIC SECONDS.
// Patient: with the retries that docs/how-to/gateway.md recommends.
// Prints "ack NUMBER" or "error NUMBER REASON" for each when its client reports it.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const pause = 20 * time.Millisecond

var (
	lock sync.Mutex
	out  = bufio.NewWriter(os.Stdout)
)

func report(number string, err error) {
	lock.Lock()
	defer lock.Unlock()
	if err == nil {
		fmt.Fprintln(out, "ack", number)
	} else {
		fmt.Fprintln(out, "error", number, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	out.Flush()
}

func main() {
	client, servers, topic := os.Args[1], strings.Split(os.Args[2], ","), os.Args[3]
	seconds, err := strconv.Atoi(os.Args[4])
	if err != nil {
		panic(err)
	}
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	if client == "franz-go" {
		byFranz(servers, topic, until)
	} else {
		bySarama(servers, topic, until, client == "patient-sarama")
	}
}

func byFranz(servers []string, topic string, until time.Time) {
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		panic(err)
	}
	for number := 0; time.Now().Before(until); number++ {
		value := strconv.Itoa(number)
		client.Produce(context.Background(), kgo.StringRecord(value), func(_ *kgo.Record, err error) { report(value, err) })
		time.Sleep(pause)
	}
	limited, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client.Flush(limited)
}

func bySarama(servers []string, topic string, until time.Time, patient bool) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1 // sarama demands it of an idempotent producer
	if patient {
		config.Producer.Retry.Max, config.Producer.Retry.Backoff = 1000, time.Second
	}
	producer, err := sarama.NewAsyncProducer(servers, config)
	if err != nil {
		panic(err)
	}
	var readers sync.WaitGroup
	readers.Add(2)
	go func() {
		defer readers.Done()
		for message := range producer.Successes() {
			report(message.Metadata.(string), nil)
		}
	}()
	go func() {
		defer readers.Done()
		for failed := range producer.Errors() {
			report(failed.Msg.Metadata.(string), failed.Err)
		}
	}()
	for number := 0; time.Now().Before(until); number++ {
		value := strconv.Itoa(number)
		producer.Input() <- &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value), Metadata: value}
		time.Sleep(pause)
	}
	producer.AsyncClose()
	readers.Wait()
}
