/** The page in Chromium: what a person sees when the worker dies, the page reloads, or an approval waits. */
import { expect, inject, onTestFinished, test } from 'vitest';
import { NO_BROWSER, openPage } from '../../test/support/browser.ts';
import { startChat } from './server.ts';

const SHOTS = process.env['PERDURE_SHOTS'];

test.skipIf(NO_BROWSER)(
  'a worker is killed and the page reloaded in mid-answer; an approval waits for the page',
  async () => {
    const chat = await startChat({ server: inject('temporal') });
    onTestFinished(() => chat.stop());
    const { page, errors } = await openPage({ viewport: { width: 390, height: 780 } });
    const shot = async (name: string): Promise<void> => {
      if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}.png` });
    };
    const say = async (text: string): Promise<void> => {
      await page.getByLabel('Message').fill(text);
      await page.getByRole('button', { name: 'Send' }).click();
    };
    const answer = page.getByRole('article', { name: 'assistant' }).last();
    const ready = page.getByRole('button', { name: 'Send' });
    const texts = async (): Promise<string> => (await answer.locator('.text').allTextContents()).join('');
    await page.goto(chat.url);
    await shot('empty');

    await say('Tell me about teapots');
    await answer.getByText('a small machine').waitFor();
    await page.getByRole('button', { name: 'Kill the worker' }).click();
    await answer.getByText('The first ones were made').waitFor();
    await shot('answer');
    await page.reload();
    await ready.waitFor();
    await answer.getByText('it will be here when you are back.').waitFor();
    expect((await texts()).match(/A teapot is a small machine/g)).toHaveLength(1);
    expect((await texts()).match(/The first ones were made/g)).toHaveLength(1);

    await say('Refund order 1001');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await ready.waitFor();
    expect(await ready.isDisabled()).toBe(true);
    // The page is closed while the approval waits.
    const url = page.url();
    await page.goto('about:blank');
    await chat.crashWorker();
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto(url);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await shot('approval');
    await page.getByRole('button', { name: 'Approve' }).click();
    await answer.getByText('Order 1001 is refunded: $49.00.').waitFor();
    await ready.waitFor();
    expect(await ready.isDisabled()).toBe(false);
    await shot('refunded');
    expect(await page.getByRole('article').count()).toBe(4);
    expect(errors).toEqual([]);
  },
);
