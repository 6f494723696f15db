// A small shop under @pyroscope/nodejs: slowFunction does three times the work of fastFunction. Prints what it measured itself.
const pyroscope = require('@pyroscope/nodejs');

const seconds = Number(process.env.SECONDS);
pyroscope.init({
  serverAddress: process.env.FLAMEGATE_URL,
  appName: process.argv[2],
  basicAuthUser: 'live',
  basicAuthPassword: process.env.FLAMEGATE_KEY,
  tags: { env: 'live' },
  flushIntervalMs: 4000,
  wall: { samplingDurationMs: 4000, samplingIntervalMicros: 10000, collectCpuTime: true },
});
pyroscope.start();

function slowFunction(n) {
  let total = 0;
  for (let i = 0; i < 3 * n; i++) total = (Math.imul(total, 1103515245) + i) | 0;
  return total;
}

function fastFunction(n) {
  let total = 0;
  for (let i = 0; i < n; i++) total = (Math.imul(total, 1103515245) + i) | 0;
  return total;
}

function measured(work, n) {
  const before = process.cpuUsage();
  work(n);
  const used = process.cpuUsage(before);
  return (used.user + used.system) / 1e6;
}

const spent = { slowFunction: 0, fastFunction: 0 };
const end = Date.now() + seconds * 1000;
(function turn() {
  spent.fastFunction += measured(fastFunction, 20000000);
  spent.slowFunction += measured(slowFunction, 20000000);
  const enough = spent.fastFunction + spent.slowFunction > 4; // seconds of CPU, on a machine that has other things to do
  if (Date.now() < end || (!enough && Date.now() < end + 30000)) return setImmediate(turn);
  console.log(JSON.stringify(spent));
  // Not stop(): in 0.6.4 a round that begins meanwhile throws. The last round is sent within the flush interval.
  setTimeout(() => process.exit(0), 5000);
})();
