/** The least that a message needs: a signal, and an activity that asks the model. */
import { condition, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';

const { answer } = proxyActivities<{ answer(texts: string[]): Promise<string> }>({
  startToCloseTimeout: '15m',
  heartbeatTimeout: '10s',
});

/** Answers messages for as long as it runs. */
export async function heard(): Promise<void> {
  const texts: string[] = [];
  setHandler(defineSignal<[string]>('say'), (text) => void texts.push(text));
  for (;;) {
    await condition(() => texts.length > 0);
    await answer(texts.splice(0));
  }
}
