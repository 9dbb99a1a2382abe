import { afterAll, beforeAll, expect, test } from 'vitest';
import { textsOf } from '../../src/contract/messages.ts';
import { WORKFLOW } from '../../src/contract/names.ts';
import { NO_BROWSER } from '../support/browser.ts';
import { untilPhase } from '../support/stage.ts';
import { type ConsoleStage, hold, loseFirst, openConsole, show, violations } from './support/console.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  if (!NO_BROWSER) stage = await openConsole();
});
afterAll(() => stage?.close());

async function started(text: string, phase: 'idle' | 'approval' = 'idle'): Promise<string> {
  const id = stage.id('talk');
  await stage.begin(id, 'support', text);
  await untilPhase(stage.session(id), phase);
  return id;
}

async function lastSaid(id: string): Promise<string> {
  const { items } = await stage.session(id).transcript();
  return items.slice(-1).flatMap(textsOf).join('');
}

test.skipIf(NO_BROWSER)('a session is read as a conversation, and goes on live', async () => {
  const id = await started('order 7');
  const { page } = await stage.browse(`/sessions/${id}`);
  const card = page.getByRole('region', { name: 'Call call_1_0 of order' });
  await card.getByText('completed').first().waitFor();
  await page.getByText('done: order 7').waitFor();
  const hostile = '<script>document.title="run"</script> \u202etxt';
  await page.getByLabel('Message to the session').fill(hostile);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page
    .locator('.assistant')
    .getByText('you said: <script>document.title="run"</script> \\u202etxt')
    .waitFor();
  expect(await page.locator('main script').count()).toBe(0);
  expect(await page.title()).toContain(id);
  // Somebody else talks to it.
  await stage.json('send', id, 'order 8');
  await page.getByText('done: order 8').waitFor();
  expect((await stage.session(id).transcript()).total).toBe(
    (await page.locator('.conversation > li').count()) + 2,
  );
});

test.skipIf(NO_BROWSER)('a session is followed on when another server takes over', async () => {
  const id = await started('hello');
  const { page } = await stage.browse(`/sessions/${id}`);
  const facts = page.locator('.facts');
  await facts.getByText('live', { exact: true }).waitFor();
  await stage.replaceServer();
  await facts.getByText('live', { exact: true }).waitFor();
  await stage.session(id).send('order 9');
  await page.getByText('done: order 9').waitFor();
  expect(await facts.getByText('live', { exact: true }).count()).toBe(1);
});

test.skipIf(NO_BROWSER)('a stream that breaks off says why until it is back', async () => {
  const id = await started('hello');
  const { page } = await stage.browse('/sessions');
  const error = { code: 'SERVER_UNAVAILABLE', message: 'Temporal is away', details: {} };
  const body = `event: reset\ndata: {}\n\nevent: error\ndata: ${JSON.stringify({ error })}\n\n`;
  await page.route('**/stream*', (route) => route.fulfill({ contentType: 'text/event-stream', body }));
  await page.goto(`${stage.url}/console/sessions/${id}`);
  await page.getByRole('alert').getByText('Temporal is away').waitFor();
  await page.unroute('**/stream*');
  await page.locator('.facts').getByText('live', { exact: true }).waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

test.skipIf(NO_BROWSER)('a hidden tab holds no connection, and goes on when it is seen again', async () => {
  const id = await started('hello');
  const { page } = await stage.browse(`/sessions/${id}`);
  // A browser opens six connections to a server.
  const tabs = [page];
  for (const tab of tabs) {
    await tab.locator('.facts').getByText('live', { exact: true }).waitFor();
    await show(tab, 'hidden');
    if (tabs.length === 8) break;
    const opened = page.context().waitForEvent('page');
    await page.evaluate('window.open(location.href)');
    tabs.push(await opened);
  }
  await stage.session(id).send('order 9');
  await expect.poll(() => lastSaid(id)).toBe('done: order 9');
  const readAgain: string[] = [];
  page.on('request', (request) => readAgain.push(new URL(request.url()).pathname));
  await show(page, 'visible');
  await page.getByText('done: order 9').waitFor();
  await page.locator('.facts').getByText('live', { exact: true }).waitFor();
  expect(await page.locator('.conversation > li').count()).toBe(5);
  expect(readAgain).toEqual([`/sessions/${id}/stream`]);
});

test.skipIf(NO_BROWSER)('a session is paused, continued and cancelled after a confirmation', async () => {
  const id = await started('hello');
  const { page } = await stage.browse(`/sessions/${id}`);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByLabel('Reason').fill('lunch');
  await page.getByText(`perdure pause ${id} --reason lunch`).waitFor();
  expect((await stage.session(id).state()).phase).toBe('idle');
  await page.getByRole('button', { name: 'Confirm: pause' }).click();
  await page.getByText('lunch').waitFor();
  await untilPhase(stage.session(id), 'paused');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('button', { name: 'Confirm: continue' }).click();
  await untilPhase(stage.session(id), 'idle');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Confirm: cancel' }).click();
  await page.locator('.status', { hasText: 'cancelled' }).waitFor();
});

test.skipIf(NO_BROWSER)('a cancellation shows what it would undo first, and undoes it', async () => {
  const id = await started('refund ch_1:100');
  const { page } = await stage.browse(`/sessions/${id}`);
  await page.getByLabel('Your name').fill('ada');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByLabel('First undo what can be undone').check();
  await page.getByText('Will be undone, in this order:').waitFor();
  await page.getByText('refund {"chargeId":"ch_1","cents":100} → {"refunded":100}').waitFor();
  await page.getByText(`perdure cancel ${id} --undo`).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  await page.getByRole('button', { name: 'Confirm: undo and cancel' }).click();
  await page.locator('.status', { hasText: 'cancelled' }).waitFor();
  const { calls } = await stage.session(id).snapshot();
  expect(calls.at(-1)).toMatchObject({ status: { kind: 'completed' }, decision: { by: 'ada' } });
});

test.skipIf(NO_BROWSER)('the effects of a session that has ended can be undone', async () => {
  const id = await started('refund ch_1:100');
  await stage.json('cancel', id);
  await stage.session(id).result();
  const { page } = await stage.browse(`/sessions/${id}`);
  await page.getByLabel('Your name').fill('ada');
  await page.getByRole('button', { name: 'Undo effects' }).click();
  await page.getByText('refund {"chargeId":"ch_1","cents":100} → {"refunded":100}').waitFor();
  expect(await violations(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  await page.getByRole('button', { name: 'Confirm: undo effects' }).click();
  await page.getByText('its effect is undone by undo_call_1_0').waitFor();
  const { calls } = await stage.session(id).snapshot();
  expect(calls.at(-1)).toMatchObject({ name: 'refund', compensates: {}, decision: { by: 'ada' } });
});

test.skipIf(NO_BROWSER)('the approval of an undo does not offer to edit its arguments', async () => {
  const id = await started('refund ch_1:100');
  await stage.json('cancel', id, '--undo', '--each');
  await untilPhase(stage.session(id), 'approval');
  const { page } = await stage.browse();
  await page.getByText(id).first().click();
  await page.getByText('The effect of refund call_1_0 is to be undone.').first().waitFor();
  const approve = page.getByRole('button', { name: /^Approve/ });
  await approve.waitFor();
  expect(await page.getByRole('button', { name: /^Edit/ }).count()).toBe(0);
  await approve.click();
  await page.getByRole('button', { name: 'Confirm: approve' }).click();
  expect(await stage.session(id).result()).toMatchObject({ status: 'cancelled' });
});

test.skipIf(NO_BROWSER)(
  'two checkpoints are compared, one is forked from, and a rewind says what it does not undo',
  async () => {
    const id = await started('refund ch_1:100');
    const { page, errors } = await stage.browse(`/sessions/${id}`);
    await page.getByLabel('Your name').fill('ada');
    await page.getByRole('button', { name: 'Show the checkpoints' }).click();
    const boxes = page.locator('.past input[type=checkbox]');
    await boxes.first().check();
    await boxes.last().check();
    await page.getByRole('region', { name: 'What has changed' }).getByText('/transcript').first().waitFor();
    await boxes.first().uncheck();
    await page.getByRole('form', { name: 'Go on' }).getByLabel('Reason').fill('try again');
    await page.getByRole('button', { name: 'Rewind this session' }).click();
    await page.getByText('A rewind undoes none of these 1 effects').waitFor();
    await page.getByText('refund {"chargeId":"ch_1","cents":100}').waitFor();
    // The refusal of an unconfirmed rewind.
    expect(errors.splice(0)).toEqual([expect.stringContaining('400')]);
    await page.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('button', { name: 'Fork into' }).click();
    await page.waitForURL((url) => !url.pathname.endsWith(id));
    const forked = decodeURIComponent(new URL(page.url()).pathname.split('/').at(-1) ?? '');
    expect((await stage.session(forked).state()).agent).toBe('support');
  },
);

test.skipIf(NO_BROWSER)('a message is sent once, also when its answer is lost', async () => {
  const id = await started('hello');
  const { page, errors } = await stage.browse(`/sessions/${id}`);
  const field = page.getByLabel('Message to the session');
  const sending = await hold(page, '**/messages');
  await field.fill('once');
  await field.press('Control+Enter');
  await field.press('Control+Enter');
  await page.getByRole('button', { name: 'Sending…' }).and(page.locator(':disabled')).waitFor();
  // What is typed meanwhile stays.
  await field.fill('once more');
  sending.release();
  await page.getByText('you said: once').waitFor();
  expect([sending.count(), await field.inputValue()]).toEqual([1, 'once more']);

  await page.unroute('**/messages');
  await loseFirst(page, '**/messages');
  await field.press('Control+Enter');
  await page.getByRole('alert').getByText('SERVER_UNAVAILABLE').waitFor();
  await field.press('Control+Enter');
  await expect.poll(() => field.inputValue()).toBe('');
  expect(errors.splice(0)).toEqual([expect.stringContaining('ERR_FAILED')]);
  // The same words once they are sent are another message.
  await field.fill('once');
  await field.press('Control+Enter');
  await expect.poll(async () => (await stage.session(id).transcript()).total).toBe(8);
  const said = (await stage.session(id).transcript()).items.filter(({ role }) => role === 'user');
  expect(said.flatMap(textsOf)).toEqual(['hello', 'once', 'once more', 'once']);
});

test.skipIf(NO_BROWSER)('a fork is made once, also when its answer is lost', async () => {
  const id = await started('hello');
  const { page, errors } = await stage.browse(`/sessions/${id}`);
  await page.getByLabel('Your name').fill('ada');
  await page.getByRole('button', { name: 'Show the checkpoints' }).click();
  await page.locator('.past input[type=checkbox]').first().check();
  await page.getByRole('form', { name: 'Go on' }).getByLabel('Reason').fill('try again');
  const { answers } = await loseFirst(page, '**/fork');
  const fork = page.getByRole('button', { name: 'Fork into' });
  await fork.dblclick();
  await page.getByRole('alert').getByText('SERVER_UNAVAILABLE').waitFor();
  await fork.click();
  await page.waitForURL((url) => !url.pathname.endsWith(id));
  expect(answers).toEqual([{ id: decodeURIComponent(new URL(page.url()).pathname.split('/').at(-1) ?? '') }]);
  expect(errors.splice(0)).toEqual([
    expect.stringContaining('ERR_FAILED'),
    // The second attempt finds the session of the first.
    expect.stringContaining('409'),
  ]);
});

test.skipIf(NO_BROWSER)('sessions are listed with filters in the address', async () => {
  const id = await started('hello');
  const { page } = await stage.browse('/sessions?agent=support');
  await page.getByRole('link', { name: id }).waitFor();
  await page.getByLabel('Status').selectOption('waits');
  await page.waitForURL('**/sessions?agent=support&status=waits');
  await expect.poll(() => page.getByRole('link', { name: id }).count()).toBe(0);
  // The list is read again while somebody types.
  await page.getByLabel('agent').fill('nobody');
  for (let reads = 0; reads < 2; reads++) await page.waitForResponse(/\/sessions\?limit=100&/);
  expect(await page.getByLabel('agent').inputValue()).toBe('nobody');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'No session fits these filters' }).waitFor();
});

test.skipIf(NO_BROWSER)(
  'a list shows the last answer and the cost, and is searched by the beginning of an id',
  async () => {
    const id = await started('hello');
    const other = await started('goodbye');
    const { page } = await stage.browse('/sessions');
    // What is searched is what Temporal lists, which is a moment behind.
    for (const listed of [id, other]) await page.getByRole('link', { name: listed }).waitFor();
    const search = page.getByRole('searchbox');
    await search.fill(id.slice(0, -1));
    await search.press('Enter');
    await page.waitForURL('**/sessions?prefix=**');
    const row = page.getByRole('row', { name: id });
    await row.getByText('you said: hello').waitFor();
    expect(await row.getByRole('cell').nth(4).textContent()).toMatch(/^\$0\.\d+$/);
    await page.getByLabel('id begins with').fill('_');
    await page.keyboard.press('Enter');
    await page.getByText('not at what was said').waitFor();
    await search.fill(id);
    await search.press('Enter');
    await page.getByRole('heading', { name: id }).waitFor();
  },
);

test.skipIf(NO_BROWSER)('a long list scrolls, and only what is seen is in the page', async () => {
  const prefix = stage.id('long');
  const ids = Array.from({ length: 300 }, (_, n) => `${prefix}-${n}`);
  // No worker takes them.
  const taskQueue = `nobody-${prefix}`;
  await Promise.all(
    ids.map((workflowId) =>
      stage.client.workflow.start(WORKFLOW.session, { workflowId, taskQueue, args: [{ agent: 'nobody' }] }),
    ),
  );
  const { page } = await stage.browse(`/sessions?prefix=${prefix}`);
  await page.getByRole('button', { name: 'Show up to 1,000' }).click();
  const list = page.getByRole('table');
  await expect.poll(() => list.getAttribute('aria-rowcount')).toBe('301');
  expect(await page.locator('tbody tr').count()).toBeLessThan(100);
  await page.evaluate('document.querySelector("main").scrollTo(0, 1e9)');
  await list.locator('tr[aria-rowindex="301"]').waitFor();
  expect(await page.locator('tbody tr').count()).toBeLessThan(100);
  expect(await violations(page)).toEqual([]);
});

test.skipIf(NO_BROWSER).each(['light', 'dark'] as const)(
  'axe finds nothing in sessions and a session in the %s theme',
  async (colorScheme) => {
    const id = await started('order 7');
    const { page } = await stage.browse('/sessions?agent=support', { colorScheme });
    await page.getByRole('link', { name: id }).click();
    await page.getByText('done: order 7').waitFor();
    await page.getByRole('button', { name: 'Show the checkpoints' }).click();
    await page.locator('.past input').first().check();
    expect(await violations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByRole('link', { name: id }).waitFor();
    await page.getByText('done: order 7').first().waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  },
);
