// go-redis against a server: go run . PORT.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func check(holds bool, what string) {
	if !holds {
		fmt.Println("failed:", what)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	for _, protocol := range []int{2, 3} {
		r := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
		check(r.FlushAll(ctx).Err() == nil, "flushall")
		check(r.Set(ctx, "a", "1", time.Minute).Val() == "OK", "set")
		check(r.Get(ctx, "a").Val() == "1", "get")
		check(r.Get(ctx, "none").Err() == redis.Nil, "no value")
		check(!r.SetNX(ctx, "a", "2", 0).Val(), "setnx")
		check(r.TTL(ctx, "a").Val() > 58*time.Second, "ttl")
		check(r.IncrBy(ctx, "n", 42).Val() == 42, "incrby")

		key, bytes := "\x00\xff\r\n$", make([]byte, 256)
		for i := range bytes {
			bytes[i] = byte(i)
		}
		check(r.Set(ctx, key, bytes, 0).Err() == nil, "set of bytes")
		check(r.Get(ctx, key).Val() == string(bytes), "get of bytes")

		pipe := r.Pipeline()
		for i := 0; i < 1000; i++ {
			pipe.Set(ctx, fmt.Sprint("p:", i), i, 0)
		}
		replies, err := pipe.Exec(ctx)
		check(err == nil && len(replies) == 1000, "pipeline")

		values, err := r.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			tx.Incr(ctx, "n")
			tx.Get(ctx, "n")
			return nil
		})
		check(err == nil && values[1].(*redis.StringCmd).Val() == "43", "transaction")
		err = r.Watch(ctx, func(tx *redis.Tx) error {
			r.Incr(ctx, "n")
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Get(ctx, "n")
				return nil
			})
			return err
		}, "n")
		check(err == redis.TxFailedErr, "watch")

		found := map[string]bool{}
		walk := r.Scan(ctx, 0, "p:*", 50).Iterator()
		for walk.Next(ctx) {
			found[walk.Val()] = true
		}
		check(walk.Err() == nil && len(found) == 1000, "scan")

		messages := r.Subscribe(ctx, "news")
		_, err = messages.Receive(ctx)
		check(err == nil, "subscribe")
		check(r.Publish(ctx, "news", "hello").Val() == 1, "publish")
		message, err := messages.ReceiveMessage(ctx)
		check(err == nil && message.Payload == "hello", "message")
		messages.Close()

		r.Set(ctx, "text", "abc", 0)
		err = r.Incr(ctx, "text").Err()
		check(err != nil && err.Error() == "ERR value is not an integer or out of range", "error")
		err = r.Do(ctx, "NOSUCH").Err()
		check(err != nil && strings.Contains(err.Error(), "unknown command"), "unknown command")

		user := []interface{}{"ACL", "SETUSER", "reader", "reset", "on", ">secret", "+get", "+set", "~own:*"}
		check(r.Do(ctx, user...).Err() == nil, "acl setuser")
		reader := redis.NewClient(&redis.Options{
			Addr: r.Options().Addr, Protocol: protocol, Username: "reader", Password: "secret",
		})
		check(reader.Set(ctx, "own:a", "1", 0).Err() == nil, "own key")
		err = reader.Get(ctx, "other").Err()
		check(err != nil && strings.HasPrefix(err.Error(), "NOPERM"), "other key")
		reader.Close()
		check(r.Do(ctx, "ACL", "DELUSER", "reader").Err() == nil, "acl deluser")

		check(r.Do(ctx, "SW.CREATE", "t", "ENGINE", "ordered", "LAYOUT", "n:i64le").Err() == nil, "create")
		check(r.Do(ctx, "SW.ADD", "t", "k", 7).Err() == nil, "add")
		sum := fmt.Sprint(r.Do(ctx, "SW.AGGREGATE", "t", "SELECT", "sum(n)").Val())
		check(strings.Contains(sum, "7"), "aggregate")
		check(r.Do(ctx, "SW.DROP", "t").Err() == nil, "drop")
		r.Close()
		fmt.Printf("go-redis %s, RESP%d: strings, bytes, ends of time, pipelines, transactions, walks, messages, "+
			"errors, users, tables\n", redis.Version(), protocol)
	}
}
