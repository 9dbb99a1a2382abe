/** Long tables: the page has only the rows near the visible ones. */
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Rows that are kept above and below the visible ones. */
const MORE = 20;
/** Shorter tables are in the page as a whole. */
const WHOLE = 200;

/** Indexes of a first row, and after a last one. */
interface Range {
  first: number;
  end: number;
}

export interface Window extends Range {
  /** The element that scrolls. */
  box: RefObject<HTMLElement | null>;
  /** The table's body. Its rows have equal heights. */
  body: RefObject<HTMLTableSectionElement | null>;
  /** The visible rows. */
  seen: Range;
  /** Pixels of the rows before and after. */
  above: number;
  below: number;
}

/** The rows of `count` to show. */
export function useWindow(count: number): Window {
  const box = useRef<HTMLElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const [{ first, end, height }, setSeen] = useState({ first: 0, end: 0, height: 0 });
  const isEmpty = count === 0;

  useLayoutEffect(() => {
    const measure = (): void => {
      const row = body.current?.querySelector('tr[aria-rowindex]');
      if (box.current === null || body.current === null || !row) return;
      const tall = row.getBoundingClientRect().height;
      const hidden = box.current.getBoundingClientRect().top - body.current.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(hidden / tall));
      const to = Math.max(0, Math.ceil((hidden + box.current.clientHeight) / tall));
      setSeen((now) =>
        now.first === from && now.end === to && now.height === tall
          ? now
          : { first: from, end: to, height: tall },
      );
    };
    const scroller = box.current;
    if (!isEmpty) measure();
    scroller?.addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => {
      scroller?.removeEventListener('scroll', measure);
      removeEventListener('resize', measure);
    };
  }, [isEmpty]);

  const seen = { first, end };
  if (count <= WHOLE) return { box, body, seen, first: 0, end: count, above: 0, below: 0 };
  const from = Math.max(0, Math.min(first, count) - MORE);
  const to = Math.min(count, end + MORE);
  return { box, body, seen, first: from, end: to, above: from * height, below: (count - to) * height };
}
