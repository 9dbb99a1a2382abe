/** A chart of bars as SVG: panels beside each other over the same rows. Readable on light and on dark. */

/** A bar, or why there is none. */
export interface Bar {
  value: number | undefined;
  label: string;
}

/** One bar per row. `log`: they differ by orders of magnitude. */
export interface Panel {
  title: string;
  subtitle: string;
  log?: boolean;
  bars: readonly Bar[];
}

/** What the panels share. */
export interface Chart {
  title: string;
  rows: readonly { label: string; ours: boolean }[];
  panels: readonly Panel[];
  foot: string;
}

const ROW = 26;
const TOP = 56;
const LABELS = 230;
const PANEL = 260;
const GAP = 20;
/** Space at the end of a bar for its label. */
const LABEL = 105;

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (each) => `&#${each.codePointAt(0)};`).replaceAll('`', '');

/** Draws a chart. */
export function drawChart({ title, rows, panels, foot }: Chart): string {
  const width = LABELS + panels.length * (PANEL + GAP);
  const height = TOP + rows.length * ROW + 40;
  const text = (x: number, y: number, kind: string, words: string): string =>
    `<text x="${x}" y="${y}" class="${kind}">${escaped(words)}</text>`;
  const parts = rows.map(({ label, ours }, i) =>
    text(LABELS - 10, TOP + i * ROW + 17, ours ? 'row ours' : 'row', label),
  );
  for (const [p, panel] of panels.entries()) {
    const left = LABELS + p * (PANEL + GAP);
    parts.push(text(left, 20, 'title', panel.title), text(left, 38, 'note', panel.subtitle));
    const length = scale(panel);
    for (const [i, { value, label }] of panel.bars.entries()) {
      const y = TOP + i * ROW;
      const bar = value === undefined ? 0 : length(value);
      if (bar > 0) {
        const kind = rows[i]?.ours ? 'bar ours' : 'bar';
        parts.push(
          `<rect x="${left}" y="${y + 4}" width="${bar}" height="${ROW - 8}" rx="2" class="${kind}"/>`,
        );
      }
      parts.push(text(left + bar + 6, y + 17, 'value', label));
    }
  }
  parts.push(text(LABELS, height - 12, 'note', foot));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect width="${width}" height="${height}" class="back"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

/** The length of a bar; on a logarithmic scale, the bar of the smallest value has a sixth of the full length. */
function scale({ bars, log }: Panel): (value: number) => number {
  const values = bars.flatMap(({ value }) => value ?? []);
  const most = Math.max(...values);
  const least = Math.min(...values);
  const whole = PANEL - LABEL;
  const share = (value: number): number => {
    if (log !== true) return value / most;
    return most === least ? 1 : 1 / 6 + (5 / 6) * (Math.log(value / least) / Math.log(most / least));
  };
  return (value) => Math.max(2, Math.round(whole * share(value)));
}

const STYLE = `
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.row { text-anchor: end } .title, .row.ours { font-weight: 600 } .note { fill: #59636e; font-size: 11px }
.bar { fill: #8c959f } .bar.ours { fill: #0969da } .back { fill: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .note { fill: #9198a1 } .bar { fill: #656c76 } .bar.ours { fill: #4493f8 } .back { fill: #0d1117 }
}`.replaceAll('\n', ' ');
