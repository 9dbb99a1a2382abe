import { afterAll, beforeAll, expect, test } from 'vitest';
import { NO_BROWSER } from '../support/browser.ts';
import { untilPhase } from '../support/stage.ts';
import { type ConsoleStage, openConsole, violations } from './support/console.ts';

let stage: ConsoleStage;
beforeAll(async () => {
  if (!NO_BROWSER) stage = await openConsole();
});
afterAll(() => stage?.close());

/** Starts a session whose model asks for this refund, and waits until a person is needed. */
async function waiting(charge: string, phase: 'approval' | 'unknown_effect' = 'approval'): Promise<string> {
  const id = stage.id('console');
  await stage.json('start', 'support', `refund ${charge}`, '--id', id);
  await untilPhase(stage.session(id), phase);
  return id;
}

test.skipIf(NO_BROWSER)(
  'a call is approved with the keyboard alone, and the page shows what happened next',
  async () => {
    const id = await waiting('ch_1:9000');
    const { page } = await stage.browse();
    await page.locator('.row', { hasText: id }).click();
    await page.getByRole('heading', { name: 'refund' }).waitFor();
    expect(page.url()).not.toContain('token');
    await page.keyboard.press('a');
    await page.getByRole('form', { name: 'Approve' }).waitFor();
    // A key alone decides nothing.
    expect((await stage.session(id).state()).phase).toBe('approval');
    await page.keyboard.press('Enter');
    await page.getByText('returned: {').waitFor();
    expect((await stage.session(id).calls()).items[0]).toMatchObject({ decision: { decision: 'approve' } });
  },
);

test.skipIf(NO_BROWSER).each(['light', 'dark'] as const)(
  'axe finds nothing in the inbox in the %s theme, also at 360 px',
  async (colorScheme) => {
    const id = await waiting('ch_9:9000');
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
