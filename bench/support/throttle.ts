/** Gives a process a share of one core: it is stopped whenever it has used more. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

const LOOK_MS = 2;
const PERIOD_MS = 100;

/** Nanoseconds of processor time of all threads. */
function usedNs(pid: number): number {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    } catch {
      // The thread has ended.
    }
  }
  return sum;
}

/**
 * Works like the quota of a container: the process may use its share of each tenth of a second at once.
 *
 * @returns a function that ends it
 */
export function throttle(pid: number, share: number): () => void {
  const most = share * PERIOD_MS;
  let left = most;
  let [period, used] = [performance.now(), usedNs(pid)];
  let stopped = false;
  const timer = setInterval(() => {
    try {
      const [now, nowUsed] = [performance.now(), usedNs(pid)];
      left -= (nowUsed - used) / 1e6;
      used = nowUsed;
      for (; now - period >= PERIOD_MS; period += PERIOD_MS) left = Math.min(most, left + most);
      if (left > 0 !== stopped) return;
      process.kill(pid, stopped ? 'SIGCONT' : 'SIGSTOP');
      stopped = !stopped;
    } catch {
      // The process has ended.
      clearInterval(timer);
    }
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    if (stopped) process.kill(pid, 'SIGCONT');
  };
}
