import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallDetail } from '../../src/contract/views.ts';
import type { Decision } from '../../src/index.ts';
import { NO_BROWSER } from '../support/browser.ts';
import { decide } from '../support/decide.ts';
import { untilPhase } from '../support/stage.ts';
import { type ConsoleStage, hold, openConsole, TOKENS, violations } from './support/console.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  if (!NO_BROWSER) stage = await openConsole();
});
afterAll(() => stage?.close());

/** Starts a session whose model does what the text says, and waits until a person is needed. */
async function waiting(
  text: string,
  phase: 'approval' | 'unknown_effect' | 'waiting' = 'approval',
  ...options: string[]
): Promise<string> {
  const id = stage.id('console');
  await stage.json('start', 'support', text, '--id', id, ...options);
  await untilPhase(stage.session(id), phase);
  return id;
}

const callOf = async (id: string) => (await stage.session(id).calls()).items[0];

test.skipIf(NO_BROWSER)(
  'a call is approved with the keyboard alone, and what happened next is shown',
  async () => {
    const id = await waiting('refund ch_1:9000');
    const { page } = await stage.browse();
    await page.locator('.row', { hasText: id }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'refund' }).waitFor();
    expect(page.url()).not.toContain('token');
    await page.keyboard.press('a');
    await page.getByRole('form', { name: 'Approve' }).waitFor();
    // A key alone decides nothing.
    expect((await stage.session(id).state()).phase).toBe('approval');
    await page.keyboard.press('Enter');
    await page.getByText('returned: {').waitFor();
    expect(await callOf(id)).toMatchObject({
      decision: { decision: 'approve' },
      result: { content: { refunded: 9_000 } },
    });
  },
);

test.skipIf(NO_BROWSER)(
  'arguments are edited in a form of the schema, and the page shows the command that does the same',
  async () => {
    const id = await waiting('refund ch_2:9000');
    const { page } = await stage.browse();
    await page.getByLabel('Your name').fill('grace');
    await page.locator('.row', { hasText: id }).click();
    await page.keyboard.press('e');
    await page.getByLabel('cents').fill('50');
    await page
      .getByText(`perdure edit ${id} call_1_0 --digest`)
      .getByText(`--args '{"chargeId":"ch_2","cents":50}'`)
      .waitFor();
    await page.getByRole('button', { name: 'Confirm: edit' }).click();
    await page.getByText('by grace').waitFor();
    await page.getByText('"refunded": 50').waitFor();
    expect(await callOf(id)).toMatchObject({
      args: { chargeId: 'ch_2', cents: 50 },
      decision: { decision: 'edit', by: 'grace' },
    });
  },
);

test.skipIf(NO_BROWSER)(
  'a call is rejected with a reason, an unknown one resolved, a cap raised',
  async () => {
    const rejected = await waiting('refund ch_3:9000');
    const lost = await waiting('refund lost:100', 'unknown_effect');
    const poor = await waiting('order 1', 'waiting', '--turns', '1');
    const { page } = await stage.browse();
    const answer = async (id: string, key: string, text: string | null): Promise<void> => {
      await page.locator('.row', { hasText: id }).click();
      await page.keyboard.press(key);
      await page.locator('form.panel').waitFor();
      if (text !== null) await page.locator('form.panel :is(textarea, input)').fill(text);
      await page.keyboard.press('Control+Enter');
      await page.locator('.decided', { hasText: id }).waitFor();
    };
    await answer(rejected, 'r', 'too late');
    await page.locator('.row', { hasText: lost }).click();
    await page.getByText('Records that dispatch 1 happened').waitFor();
    await page.getByText('dispatch 1, unknown').waitFor();
    await answer(lost, 'l', '{"refunded": 100}');
    await answer(poor, 'b', '9');
    await untilPhase(stage.session(poor), 'idle');
    expect(await callOf(rejected)).toMatchObject({ decision: { decision: 'reject', reason: 'too late' } });
    expect(await callOf(lost)).toMatchObject({
      resolutions: [{ outcome: 'landed' }],
      result: { content: { refunded: 100 } },
    });
  },
);

test.skipIf(NO_BROWSER)('when somebody else was first, the page says who', async () => {
  const id = await waiting('refund ch_4:9000');
  const { page, errors } = await stage.browse();
  await page.locator('.row', { hasText: id }).click();
  await page.keyboard.press('a');
  // The page does not know yet.
  const reading = await hold(page, '**/inbox');
  await decide(stage.session(id), 'call_1_0', { decision: 'reject' } satisfies Decision, { by: 'grace' });
  await page.getByRole('button', { name: 'Confirm: approve' }).click();
  await page.getByRole('alert').getByText('reject by grace').waitFor();
  reading.release();
  await page.getByText('This waits no longer').waitFor();
  expect(await page.getByRole('button', { name: 'Confirm' }).count()).toBe(0);
  await page.getByRole('alert').getByText('reject by grace').waitFor();
  // The browser reports the refused request, and nothing else.
  expect(errors.splice(0)).toEqual([expect.stringContaining('409')]);
});

test.skipIf(NO_BROWSER)('an answer stays with its item when something more urgent comes', async () => {
  const [calm, urgent] = [await waiting('refund ch_5:9000'), stage.id('urgent')];
  const { page } = await stage.browse('', { only: [calm, urgent] });
  await page.getByRole('heading', { name: 'refund' }).waitFor();
  await page.keyboard.press('a');
  await page.getByRole('form', { name: 'Approve' }).waitFor();
  await stage.begin(urgent, 'desk', 'release p_1');
  await page.locator('li:first-child > .row', { hasText: urgent }).waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.decided', { hasText: calm }).getByText('returned: {').waitFor();
  expect((await stage.session(urgent).state()).phase).toBe('approval');
});

test.skipIf(NO_BROWSER)(
  'an item that somebody else has decided is not answered, nor another one in its place',
  async () => {
    const [id, other] = [await waiting('refund ch_6:9000'), await waiting('refund ch_7:9000')];
    const { page } = await stage.browse('', { only: [id, other] });
    await page.locator('.row', { hasText: id }).click();
    await page.keyboard.press('r');
    await page.locator('form.panel textarea').fill('too much');
    await decide(stage.session(id), 'call_1_0', { decision: 'approve' }, { by: 'grace' });
    await page.getByText('This waits no longer').waitFor();
    await page.getByText('approved by grace').waitFor();
    expect(await page.locator('form.panel textarea').inputValue()).toBe('too much');
    await page.keyboard.press('Control+Enter');
    expect(await page.getByRole('button', { name: 'Confirm' }).count()).toBe(0);
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.locator('.row[aria-current]', { hasText: other }).waitFor();
    expect((await stage.session(other).state()).phase).toBe('approval');
  },
);

test.skipIf(NO_BROWSER)('an edit is not sent before the person sees the arguments', async () => {
  const id = await waiting('refund ch_8:9000');
  const { page } = await stage.browse('/sessions');
  const reading = await hold(page, '**/calls/call_1_0');
  await page.goto(`${stage.url}/console?session=${id}`);
  await page.getByRole('heading', { name: 'refund' }).waitFor();
  await page.keyboard.press('e');
  const panel = page.getByRole('form', { name: 'Edit' });
  await panel.getByText('Reading…').waitFor();
  expect(await page.getByRole('button', { name: 'Confirm: edit' }).isDisabled()).toBe(true);
  // What one types early goes nowhere, and moves to no other item.
  for (const key of ['j', 'a', 'Enter', 'Control+Enter']) await page.keyboard.press(key);
  reading.release();
  await panel.getByLabel('chargeId').and(page.locator(':focus')).waitFor();
  await panel.getByLabel('cents').fill('50');
  await page.keyboard.press('Enter');
  await page.getByText('"refunded": 50').waitFor();
  expect(await callOf(id)).toMatchObject({ args: { chargeId: 'ch_8', cents: 50 } });
});

test.skipIf(NO_BROWSER)('arguments whose schema nobody knows are edited as JSON', async () => {
  const id = await waiting('refund ch_10:9000');
  const { page } = await stage.browse('/sessions');
  await page.route('**/calls/call_1_0', async (route) => {
    const response = await route.fetch();
    const detail = (await response.json()) as CallDetail;
    await route.fulfill({ response, json: { ...detail, tool: null } });
  });
  await page.goto(`${stage.url}/console?session=${id}`);
  await page.getByRole('heading', { name: 'refund' }).waitFor();
  await page.keyboard.press('e');
  await page.getByText('Its schema is not known.').waitFor();
  await page.getByLabel('As JSON').and(page.locator(':focus')).fill('{"chargeId":"ch_10","cents":60}');
  await page.keyboard.press('Control+Enter');
  await page.getByText('"refunded": 60').waitFor();
  expect(await callOf(id)).toMatchObject({ args: { chargeId: 'ch_10', cents: 60 } });
});

test.skipIf(NO_BROWSER)('a global effect that is lost again is listed again', async () => {
  const id = stage.id('global');
  await stage.begin(id, 'desk', `announce ${id}`);
  await untilPhase(stage.session(id), 'unknown_effect');
  const { page } = await stage.browse('', { only: [id] });
  await page.getByText('Records that dispatch 1 happened').waitFor();
  await page.keyboard.press('n');
  await page.getByRole('button', { name: 'Confirm: it did not happen' }).click();
  await page.locator('.decided', { hasText: id }).waitFor();
  await page.locator('.row', { hasText: id }).waitFor();
  await page.getByText('Records that dispatch 2 happened').waitFor();
  expect(await page.title()).toContain('(1)');
});

test.skipIf(NO_BROWSER)('a call that waits again after a rewind is listed again', async () => {
  const id = await waiting('refund ch_11:9000');
  const past = await stage.saver.get(id);
  const { page } = await stage.browse('', { only: [id] });
  await page.getByRole('heading', { name: 'refund' }).waitFor();
  await page.keyboard.press('r');
  await page.keyboard.press('Control+Enter');
  await page.locator('.decided', { hasText: id }).getByText('did not run').waitFor();
  await stage.json('checkpoints', 'rewind', id, past?.id ?? '', '--reason', 'look again', '--yes');
  await page.locator('.row', { hasText: id }).waitFor();
  expect(await page.title()).toContain('(1)');
});

test.skipIf(NO_BROWSER)(
  'hostile arguments are text, and marks that change the direction are seen',
  async () => {
    const hostile = '<img/src=x/onerror=document.title="run">\u202egnp.exe';
    const id = await waiting(`refund ${hostile}:9000`);
    const { page } = await stage.browse();
    await page.locator('.row', { hasText: id }).click();
    await page.getByText('<img/src=x/onerror=document.title="run">\\u202egnp.exe').first().waitFor();
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(await page.title()).not.toBe('run');
  },
);

test.skipIf(NO_BROWSER)('without the right token the page asks for it, and shows nothing', async () => {
  const { page, errors } = await stage.browse('', {}, 'wrong-token-of-nobody');
  await page.getByRole('heading', { name: 'Perdure' }).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.getByLabel('Token').fill(TOKENS.shared);
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Sessions' }).waitFor();
  expect(errors.splice(0)).toEqual([expect.stringContaining('401')]);
});

test.skipIf(NO_BROWSER).each(['light', 'dark'] as const)(
  'axe finds nothing in the inbox in the %s theme, also at 360 px',
  async (colorScheme) => {
    const id = await waiting('refund ch_9:9000');
    const { page } = await stage.browse('', { colorScheme, viewport: { width: 1280, height: 800 } });
    await page.locator('.row', { hasText: id }).click();
    await page.getByRole('button', { name: 'Edit' }).first().waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press('e');
    await page.getByRole('form', { name: 'Edit' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    expect(await violations(page)).toEqual([]);
  },
);

test.skipIf(NO_BROWSER)(
  'the page is under 100 KB compressed, and its policy lets nothing else in',
  async () => {
    let bytes = 0;
    for (const name of ['', '/main.js', '/main.css']) {
      const response = await fetch(`${stage.url}/console${name}`);
      expect(response.headers.get('content-security-policy')).toContain(
        "default-src 'none'; script-src 'self'",
      );
      bytes += gzipSync(await response.text()).length;
    }
    expect(bytes).toBeLessThan(100_000);
    const home = await fetch(stage.url, { headers: { accept: 'text/html' }, redirect: 'manual' });
    expect([home.status, home.headers.get('location')]).toEqual([302, '/console']);
  },
);
