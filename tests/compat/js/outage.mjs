// Sends numbered records for a while with the defaults of a client: outage.mjs kafkajs|patient-kafkajs|platformatic SERVERS TOPIC SECONDS.
// Patient: with the retries that docs/how-to/gateway.md recommends.
// Prints "ack NUMBER" or "error NUMBER REASON" for each when its client reports it, and sends the next after that.
const [, , client, servers, topic, seconds] = process.argv
const brokers = servers.split(',')

async function byKafkajs() {
  const { Kafka, logLevel } = (await import('kafkajs')).default
  const retry = client === 'patient-kafkajs' ? { retries: 1000 } : {}
  const producer = new Kafka({ clientId: 'outage', brokers, logLevel: logLevel.NOTHING, retry }).producer({
    idempotent: true,
    maxInFlightRequests: 1,
  })
  await producer.connect()
  return [(value) => producer.send({ topic, acks: -1, messages: [{ value }] }), () => producer.disconnect()]
}

async function byPlatformatic() {
  const { Producer, ProduceAcks, stringSerializers } = await import('@platformatic/kafka')
  const producer = new Producer({
    clientId: 'outage',
    bootstrapBrokers: brokers,
    serializers: stringSerializers,
    idempotent: true,
  })
  return [(value) => producer.send({ messages: [{ topic, value }], acks: ProduceAcks.ALL }), () => producer.close()]
}

function reason(error) {
  const causes = [...(error.errors ?? []), error.cause].filter(Boolean).map(reason)
  return [`${error.name}: ${error.message}`, ...new Set(causes)].join(' < ').replaceAll('\n', ' ')
}

const [send, close] = await (client === 'platformatic' ? byPlatformatic() : byKafkajs())
const until = Date.now() + 1000 * Number(seconds)
for (let number = 0; Date.now() < until; number++) {
  try {
    await send(String(number))
    console.log('ack', number)
  } catch (error) {
    console.log('error', number, reason(error))
  }
  await new Promise((resolve) => setTimeout(resolve, 20))
}
await Promise.race([close(), new Promise((resolve) => setTimeout(resolve, 10_000))]).catch(() => {})
process.exit(0)
