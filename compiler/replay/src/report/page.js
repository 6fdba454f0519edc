'use strict';
for (const table of document.querySelectorAll('table')) {
  table.querySelectorAll('th').forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') !== 'descending';
      table.querySelectorAll('th').forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const key = row => {
        const cell = row.children[column];
        return cell.dataset.v === undefined ? cell.textContent : BigInt(cell.dataset.v);
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].map(row => [key(row), row]);
      rows.sort(([a], [b]) => (typeof a !== typeof b ? (typeof a === 'bigint' ? 1 : -1) : a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      body.replaceChildren(...rows.map(([, row]) => row));
    });
  });
}
const flame = document.getElementById('flame');
if (flame) {
  const frames = [...flame.querySelectorAll('.f')], whole = 1200, shown = document.getElementById('frame');
  const labels = document.getElementById('labels');
  let current = frames[0];
  document.querySelectorAll('.js').forEach(part => { part.hidden = false; });
  const place = frame => ({ x: +frame.dataset.x, w: +frame.dataset.w, y: +frame.getAttribute('y') });
  const label = () => {
    labels.replaceChildren(...frames.flatMap(frame => {
      const x = +frame.getAttribute('x'), w = +frame.getAttribute('width');
      if (w < whole * 0.02 || x + w <= 0 || x >= whole) return [];
      const span = document.createElement('span');
      const left = Math.max(x, 0), right = Math.min(x + w, whole);
      span.style.left = left * 100 / whole + '%';
      span.style.width = (right - left) * 100 / whole + '%';
      span.style.top = frame.getAttribute('y') + 'px';
      span.textContent = frame.getAttribute('aria-label').replace(/: \d+ \(.*$/, '');
      return [span];
    }));
  };
  const zoom = to => {
    const { x, w } = place(to);
    for (const frame of frames) {
      const own = place(frame);
      frame.setAttribute('x', (own.x - x) * whole / w);
      frame.setAttribute('width', own.w * whole / w);
    }
    label();
  };
  const focus = frame => {
    if (!frame) return;
    current.setAttribute('tabindex', -1);
    current = frame;
    current.setAttribute('tabindex', 0);
    current.focus();
  };
  const step = (from, key) => {
    const own = place(from), middle = own.x + own.w / 2;
    if (key === 'ArrowUp' || key === 'ArrowDown') {
      const y = own.y + (key === 'ArrowUp' ? -18 : 18);
      const row = frames.filter(frame => place(frame).y === y);
      const over = row.filter(frame => { const p = place(frame); return key === 'ArrowUp' ? p.x >= own.x - 0.01 && p.x + p.w <= own.x + own.w + 0.01 : p.x <= middle && p.x + p.w >= middle; });
      return over.sort((a, b) => place(b).w - place(a).w)[0];
    }
    const row = frames.filter(frame => place(frame).y === own.y).sort((a, b) => place(a).x - place(b).x);
    return row[row.indexOf(from) + (key === 'ArrowRight' ? 1 : -1)];
  };
  for (const frame of frames) {
    frame.addEventListener('click', () => { focus(frame); zoom(frame); });
    frame.addEventListener('focus', () => { shown.textContent = frame.getAttribute('aria-label'); });
    frame.addEventListener('mouseenter', () => { shown.textContent = frame.getAttribute('aria-label'); });
    frame.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') zoom(frame);
      else if (event.key === 'Escape') zoom(frames[0]);
      else if (event.key.startsWith('Arrow')) focus(step(frame, event.key));
      else return;
      event.preventDefault();
    });
  }
  document.getElementById('reset').addEventListener('click', () => zoom(frames[0]));
  document.getElementById('search').addEventListener('input', event => {
    const wanted = event.target.value.toLowerCase();
    let hits = 0;
    for (const frame of frames) {
      const hit = wanted !== '' && frame.getAttribute('aria-label').toLowerCase().includes(wanted);
      frame.classList.toggle('hit', hit);
      hits += hit;
    }
    document.getElementById('found').textContent = wanted === '' ? '' : hits + ' frames';
  });
  zoom(frames[0]);
}
