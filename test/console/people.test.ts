import { afterAll, beforeAll, expect, test } from 'vitest';
import { NO_BROWSER } from '../support/browser.ts';
import { decide } from '../support/decide.ts';
import { untilPhase } from '../support/stage.ts';
import { type ConsoleStage, openConsole, TOKENS, violations } from './support/console.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  if (!NO_BROWSER) stage = await openConsole();
});
afterAll(() => stage?.close());

/** Starts a session, and waits until it needs a person. */
async function waiting(agent: string, text: string): Promise<string> {
  const id = stage.id('people');
  await stage.begin(id, agent, text);
  await untilPhase(stage.session(id), 'approval');
  return id;
}

const callOf = async (id: string) => (await stage.session(id).calls()).items[0];

test.skipIf(NO_BROWSER)('what the token may not do is disabled, and the page says why', async () => {
  const id = await waiting('support', 'refund ch_1:9000');
  const { page } = await stage.browse(`?session=${id}`, {}, TOKENS.rita);
  await page.getByRole('heading', { name: 'refund' }).waitFor();
  expect(await page.getByRole('button', { name: 'Approve a' }).isDisabled()).toBe(true);
  await page.getByText('Needs the role decide. Your token has: read.').waitFor();
  await page.keyboard.press('a');
  expect(await page.getByRole('form', { name: 'Approve' }).count()).toBe(0);
  await page.getByRole('link', { name: id }).click();
  await page.getByText('Needs the role talk.').waitFor();
  expect(await page.getByRole('button', { name: 'Pause' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Show the checkpoints' }).click();
  await page.locator('.past input').first().check();
  await page.getByRole('form', { name: 'Go on' }).getByLabel('Reason').fill('look');
  expect(await page.getByRole('button', { name: 'Fork into' }).isDisabled()).toBe(true);
  expect(await violations(page)).toEqual([]);
});

test.skipIf(NO_BROWSER)('of two approvals the page says who gave one, and who is still needed', async () => {
  const id = await waiting('desk', 'pay inv_1');
  const shared = (await stage.browse(`?session=${id}`)).page;
  await shared.getByText('Takes a verified person: use a token of your own.').waitFor();
  const hedy = (await stage.browse(`?session=${id}`, {}, TOKENS.hedy)).page;
  await hedy.getByText('0 of 2. 2 more needed. Not by ada, who shaped what is asked.').waitFor();
  await hedy.keyboard.press('a');
  await hedy.getByRole('button', { name: 'Confirm: approve' }).click();
  await hedy.getByText('1 of 2 have approved').waitFor();
  await hedy.locator('.row', { hasText: id }).getByText('approval 1 of 2').click();
  await hedy.getByText('1 of 2: hedy. 1 more needed.').waitFor();
  await hedy.getByText('You have approved it. Somebody else must, too.').waitFor();
  const grace = (await stage.browse(`?session=${id}`, {}, TOKENS.grace)).page;
  await grace.getByText('1 of 2: hedy. 1 more needed.').waitFor();
  await grace.keyboard.press('a');
  await grace.getByRole('button', { name: 'Confirm: approve' }).click();
  await grace.getByText('returned: {').waitFor();
  await grace.goto(`${stage.url}/console/sessions/${id}`);
  const life = grace.getByRole('region', { name: 'of pay' }).getByRole('list');
  await life.getByText('approved by hedy').waitFor();
  await life.getByText('approved by grace').waitFor();
  expect((await callOf(id))?.approvers?.given.map(({ by }) => by)).toEqual(['hedy', 'grace']);
});

test.skipIf(NO_BROWSER)('many decisions whose calls go on leave the page usable', async () => {
  // More than a browser opens connections to a server.
  const ids = await Promise.all(Array.from({ length: 8 }, (_, n) => waiting('desk', `pay inv_many_${n}`)));
  const { page } = await stage.browse('', {}, TOKENS.hedy);
  for (const id of ids) {
    await page.locator('.row', { hasText: id }).click();
    await page.keyboard.press('a');
    await page.getByRole('button', { name: 'Confirm: approve' }).click();
    await page.locator('.decided li', { hasText: id }).getByText('1 of 2 have approved').waitFor();
  }
  await page.waitForResponse('**/inbox');
  // The oldest is still followed.
  const [first = ''] = ids;
  const rejection = { decision: 'reject' } as const;
  await decide(stage.session(first), 'call_1_0', rejection, { by: 'grace', verified: true });
  await page.locator('.decided li', { hasText: first }).getByText('did not run').waitFor();
  expect(await page.locator('.decided li').count()).toBe(ids.length);
});

test.skipIf(NO_BROWSER)('a question is answered with one of its options', async () => {
  const id = await waiting('desk', 'ask Which seat?');
  const { page } = await stage.browse(`/sessions/${id}`);
  await page.locator('.waits').getByText('Which seat?').waitFor();
  await page.getByRole('link', { name: 'Answer in the inbox' }).click();
  await page.getByRole('heading', { name: 'Which seat?' }).waitFor();
  await page.getByText('The model gets the default: "any"').waitFor();
  await page.keyboard.press('t');
  await page.getByRole('button', { name: 'aisle' }).click();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Confirm: answer' }).click();
  await page.locator('.decided', { hasText: 'Which seat?' }).waitFor();
  await untilPhase(stage.session(id), 'idle');
  expect((await callOf(id))?.result).toMatchObject({ content: 'aisle' });
});

test.skipIf(NO_BROWSER)('a typed question is answered in a form of its schema', async () => {
  const id = await waiting('desk', 'trip How shall I book?');
  const { page } = await stage.browse(`?session=${id}`);
  await page.getByRole('heading', { name: 'How shall I book?' }).waitFor();
  await page.keyboard.press('t');
  await page.getByLabel('seat').selectOption('window');
  const confirm = page.getByRole('button', { name: 'Confirm: answer' });
  await confirm.click();
  // The browser asks for the required field.
  expect((await stage.session(id).state()).phase).toBe('approval');
  await page.getByLabel('nights').fill('3');
  await confirm.click();
  await untilPhase(stage.session(id), 'idle');
  expect((await callOf(id))?.result).toMatchObject({ content: { seat: 'window', nights: 3 } });
});

test.skipIf(NO_BROWSER)('queued messages are seen live, changed and withdrawn', async () => {
  const id = await waiting('support', 'refund ch_5:9000');
  const { page } = await stage.browse(`/sessions/${id}`, {}, TOKENS.hedy);
  const queue = page.getByRole('region', { name: 'Queue' });
  await page.getByLabel('Message to the session').fill('and hurry');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await queue.getByText('and hurry').waitFor();
  // Somebody else sends one, too.
  await stage.json('send', id, '<b>second</b>');
  await queue.getByText('<b>second</b>').waitFor();
  const first = queue.getByRole('listitem').first();
  await first.getByRole('button', { name: 'Edit' }).click();
  await first.getByRole('textbox').fill('take your time');
  await page.getByText('--edit').waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: 'Confirm: edit' }).click();
  await queue.getByText('changed by hedy').waitFor();
  const second = queue.getByRole('listitem').last();
  await second.getByRole('button', { name: 'Withdraw' }).click();
  await page.getByRole('button', { name: 'Confirm: withdraw' }).click();
  await expect.poll(() => queue.getByRole('listitem').count()).toBe(1);
  expect(await stage.session(id).queue()).toMatchObject([{ text: 'take your time', edited: { by: 'hedy' } }]);
});

test.skipIf(NO_BROWSER)('a question aside is answered while an approval waits, and is marked', async () => {
  const id = await waiting('support', 'refund ch_6:9000');
  const { page } = await stage.browse(`/sessions/${id}`, {}, TOKENS.hedy);
  await page.getByLabel('Message to the session').fill('why?');
  await page.getByRole('button', { name: 'Ask aside' }).click();
  const answer = page.locator('.conversation > .aside', { hasText: 'you said: why?' });
  await answer.getByText('aside: nothing pending has changed').waitFor();
  expect((await stage.session(id).state()).phase).toBe('approval');
  expect(await violations(page)).toEqual([]);
});

test.skipIf(NO_BROWSER)('sessions that wait for one pool are one item, and its cap is raised', async () => {
  const pool = stage.id('pool');
  await stage.json('pool', pool, '--turns', '1');
  const ids = [stage.id('people'), stage.id('people')];
  for (const id of ids) await stage.json('start', 'support', 'order 1', '--id', id, '--pool', pool);
  await Promise.all(ids.map((id) => untilPhase(stage.session(id), 'waiting')));
  const { page } = await stage.browse();
  await page.locator('.row', { hasText: pool }).click();
  expect(await page.locator('.row', { hasText: pool }).count()).toBe(1);
  await page.keyboard.press('b');
  await page.locator('form.panel input').fill('9');
  await page.getByText(`perdure pool ${pool} --turns 9`).waitFor();
  await page.keyboard.press('Control+Enter');
  await Promise.all(ids.map((id) => untilPhase(stage.session(id), 'idle')));
});

test.skipIf(NO_BROWSER)('a call of a sub-agent links to its session, which links back', async () => {
  const id = stage.id('people');
  await stage.begin(id, 'lead', 'delegate refund ch_8:9000');
  const { page } = await stage.browse(`/sessions/${id}`);
  const child = page.getByRole('region', { name: 'of support' }).getByRole('link');
  await child.click();
  await page.getByText('lead › support, started by').waitFor();
  await page.getByRole('link', { name: 'Answer in the inbox' }).click();
  await page.getByRole('heading', { name: 'refund' }).waitFor();
  await page.locator('.row[aria-current]', { hasText: 'lead › support' }).waitFor();
  await page.keyboard.press('a');
  await page.getByRole('form', { name: 'Approve' }).waitFor();
  await page.keyboard.press('Enter');
  await untilPhase(stage.session(id), 'idle');
  await page.goBack();
  await page.getByRole('link', { name: id, exact: true }).click();
  await page.getByText('done: delegate refund ch_8:9000').waitFor();
  expect(page.url()).toMatch(new RegExp(`/${id}$`));
});

test.skipIf(NO_BROWSER)('the report of an agent in the background is no message of a person', async () => {
  const id = stage.id('people');
  await stage.begin(id, 'lead', 'later order 1');
  const { page } = await stage.browse(`/sessions/${id}`);
  const report = page.locator('.conversation > li', { hasText: 'It has completed' }).first();
  await report.getByText('Report of support', { exact: true }).waitFor();
  expect(await violations(page)).toEqual([]);
  await report.getByRole('link', { name: 'session' }).click();
  await page.getByText('lead › support, started by').waitFor();
});
