#include "planner/picture/style.h"

namespace stw::picture {

// Reads the JSON in #data and the rectangles of the arena. Every text is set through textContent.
const char* const page_script = R"js(
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const byId = id => document.getElementById(id);
  const tip = byId('tip'), arena = byId('arena'), live = byId('live'), frontier = byId('frontier');
  const group = n => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
  const bytes = n => {
    for (const [unit, name] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']])
      if (n >= unit) return (n / unit).toFixed(unit > 1024 ? 2 : 1) + ' ' + name;
    return n + ' B';
  };
  const add = (to, tag, text) => {
    const e = to.appendChild(document.createElement(tag));
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const swatch = (to, c) => { add(to, 'i').style.background = 'var(--c' + c + ')'; };

  // Instructions: op, tensor, place and phase of each.
  const moment = i => {
    const [o, t, p, f] = data.instructions.slice(4 * i, 4 * i + 4);
    return data.labels[o] + data.labels[t] + ' (' + (data.labels[p] ? data.labels[p] + ', ' : '') +
      data.phases[f] + ')';
  };
  const sectionOf = i => {
    let s = 0;
    while (s + 1 < data.sections.length && i >= data.sections[s + 1][0]) ++s;
    return data.sections[s];
  };
  const x = i => {
    const [first, count, begin, end] = sectionOf(i);
    return begin + (end - begin) * (i - first) / count;
  };
  const instructionAt = share => {
    const s = data.sections.find(each => share < each[3]) || data.sections[data.sections.length - 1];
    return s[0] + Math.min(s[1] - 1, Math.max(0, Math.floor((share - s[2]) / (s[3] - s[2]) * s[1])));
  };

  // Rectangles in thousandths of the plot.
  const rectangles = [...arena.querySelectorAll('.marks rect')];
  const boxes = rectangles.map(r => ['x', 'y', 'width', 'height'].map(a => +r.getAttribute(a)));
  const field = 9, mark = n => data.marks.slice(field * n, field * n + field);
  const hidden = new Set();
  const svg = arena.querySelector('svg');
  let shown = 1000;   // of their height; less in the zoom
  const hit = (px, py) => {
    for (let n = boxes.length - 1; n >= 0; --n) {
      const [bx, by, w, h] = boxes[n];
      if (px >= bx && px < bx + w && py >= by && py < by + h && !hidden.has(data.marks[field * n + 3]))
        return n;
    }
    return -1;
  };
  // Thin rectangles are caught from three pixels away.
  const near = (px, py, rx, ry) => {
    let best = hit(px, py), distance = 1;
    if (best >= 0) return best;
    boxes.forEach(([bx, by, w, h], n) => {
      if (hidden.has(data.marks[field * n + 3])) return;
      const dx = Math.max(bx - px, 0, px - bx - w) / rx, dy = Math.max(by - py, 0, py - by - h) / ry,
            d = dx * dx + dy * dy;
      if (d < distance) { distance = d; best = n; }
    });
    return best;
  };

  const hide = () => {
    tip.style.display = 'none';
    document.querySelectorAll('.mark, .cross').forEach(e => { e.style.display = 'none'; });
  };
  const show = (clientX, clientY) => {
    tip.style.display = 'block';
    const w = tip.offsetWidth, h = tip.offsetHeight, right = innerWidth - 8, low = innerHeight - 8;
    tip.style.left =
      Math.max(8, clientX + 14 + w > right ? Math.min(clientX - 14 - w, right - w) : clientX + 14) + 'px';
    tip.style.top = Math.max(8, clientY + 14 + h > low ? clientY - 14 - h : clientY + 14) + 'px';
  };
  const cross = share => document.querySelectorAll('.cross').forEach(e => {
    e.style.display = 'block';
    e.style.left = 100 * share + '%';
  });

  const describeMark = n => {
    const [name, place, reason, c, size, first, last, count, persistent] = mark(n);
    const where = data.labels[place];
    tip.textContent = '';
    add(tip, 'strong', data.labels[name]);
    const line = add(tip, 'p');
    swatch(line, c);
    line.append(data.classes[c] + (where ? ', ' + where : ''));
    const merged = count > 1 && !persistent;
    add(tip, 'p', bytes(size) + ' (' + group(size) + ' bytes)' +
      (merged ? ' in ' + group(count) + ' buffers that are drawn together' : ''));
    if (merged) add(tip, 'p', 'The largest is named. They need not be alive at the same time.');
    add(tip, 'p', persistent
      ? (c === 1 ? 'Lives from the first micro-step to the update.' : 'Lives through the whole run.')
      : first === last ? 'Lives during ' + moment(first) + '.'
      : 'Lives from ' + moment(first) + ' to ' + moment(last) + '.');
    add(tip, 'p', data.labels[reason][0].toUpperCase() + data.labels[reason].slice(1) + '.');
    const outline = arena.querySelector('.mark'), [bx, by, w, h] = boxes[n];
    Object.assign(outline.style, {
      display: 'block', left: bx / 10 + '%', top: 100 * by / shown + '%', width: w / 10 + '%',
      height: 100 * Math.min(h, Math.max(0, shown - by)) / shown + '%'});
    return boxes[n];
  };

  const describeLive = share => {
    const i = instructionAt(share);
    let low = 0, high = data.columns.length / 10 - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (data.columns[10 * middle] <= i) low = middle; else high = middle - 1;
    }
    const column = data.columns.slice(10 * low, 10 * low + 10), sizes = column.slice(3);
    tip.textContent = '';
    add(tip, 'strong', bytes(sizes.reduce((a, b) => a + b)) + ' live');
    add(tip, 'p', moment(column[2]));
    const table = add(tip, 'table');
    for (const c of data.order) {
      if (!sizes[c]) continue;
      const row = add(table, 'tr'), name = add(row, 'td');
      swatch(name, c);
      name.append(data.classes[c]);
      add(row, 'td', bytes(sizes[c])).className = 'n';
    }
    cross(x(column[2]));
  };

  const describePoint = n => {
    const [, , size, speed, label] = data.frontier[n];
    tip.textContent = '';
    add(tip, 'strong', bytes(size));
    add(tip, 'p', speed + ' tokens/s');
    if (label) add(tip, 'p', label);
  };

  const shares = (plot, event) => {
    const box = plot.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height, box];
  };
  const onArena = event => {
    const [px, py, box] = shares(arena, event),
          n = near(px * 1000, py * shown, 3000 / box.width, 3 * shown / box.height);
    if (n < 0) return hide();
    hide();
    describeMark(n);
    cross(px);
    show(event.clientX, event.clientY);
  };
  const onLive = event => {
    hide();
    describeLive(Math.min(0.99999, Math.max(0, shares(live, event)[0])));
    show(event.clientX, event.clientY);
  };
  const onFrontier = event => {
    const [px, py, box] = shares(frontier, event);
    let best = -1, distance = 30;
    data.frontier.forEach(([fx, fy], n) => {
      const d = Math.hypot((fx - px) * box.width, (fy - py) * box.height);
      if (d < distance) { distance = d; best = n; }
    });
    hide();
    if (best < 0) return;
    describePoint(best);
    show(event.clientX, event.clientY);
  };
  const plots = [[arena, onArena], [live, onLive], [frontier, onFrontier]].filter(([plot]) => plot);
  for (const [plot, handler] of plots) {
    plot.addEventListener('pointermove', event => { if (event.pointerType === 'mouse') handler(event); });
    plot.addEventListener('pointerleave', event => { if (event.pointerType === 'mouse') hide(); });
    plot.addEventListener('click', handler);
    plot.addEventListener('blur', hide);
  }
  // A tap within a finger's width of a plot is a tap on it. Browsers move taps onto text that is near.
  document.addEventListener('click', event => {
    if (event.target.closest('.plot')) return;
    for (const [plot, handler] of event.target.closest('button') ? [] : plots) {
      const box = plot.getBoundingClientRect(), { clientX, clientY } = event;
      const inside = { clientX: Math.min(Math.max(clientX, box.left), box.right - 1),
                       clientY: Math.min(Math.max(clientY, box.top), box.bottom - 1) };
      if (Math.hypot(inside.clientX - clientX, inside.clientY - clientY) < 9) return handler(inside);
    }
    hide();
  });
  addEventListener('keydown', event => { if (event.key === 'Escape') hide(); });

  // Keys: from rectangle to rectangle, from instruction to instruction, from point to point.
  const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  let at = -1, column = 0, point = -1;
  const keys = (plot, move) => plot && plot.addEventListener('keydown', event => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    hide();
    const [sx, sy] = move(step), box = plot.getBoundingClientRect();
    show(box.left + sx * box.width, box.top + sy * box.height);
  });
  keys(arena, ([dx, dy]) => {
    let [bx, by, w, h] = at < 0 ? [0, shown - 1, 1, 1] : boxes[at], found = -1;
    let px = dx > 0 ? bx + w : dx < 0 ? bx : bx + w / 2, py = dy > 0 ? by + h : dy < 0 ? by : by + h / 2;
    if (at < 0) found = hit(px, py);
    for (px += dx * 0.01, py += dy * 0.01; found < 0 && px >= 0 && px < 1000 && py >= 0 && py < shown;
         px += dx / 2, py += dy * shown / 2000)
      if ((found = hit(px, py)) === at) found = -1;
    if (found >= 0) at = found;
    if (at < 0) at = 0;
    [bx, by, w, h] = describeMark(at);
    return [(bx + w / 2) / 1000, Math.min(1, (by + h / 2) / shown)];
  });
  keys(live, ([dx, dy]) => {
    column = Math.min(data.columns.length / 10 - 1, Math.max(0, column + dx - dy * 10));
    const share = x(data.columns[10 * column]);
    describeLive(share + 1e-9);
    return [share, 0.5];
  });
  keys(frontier, ([dx, dy]) => {
    point = Math.min(data.frontier.length - 1, Math.max(0, point + dx - dy));
    describePoint(point);
    return data.frontier[point];
  });

  const zoom = byId('zoom');
  if (zoom) zoom.addEventListener('click', () => {
    const zoomed = document.body.classList.toggle('zoomed');
    zoom.setAttribute('aria-pressed', String(zoomed));
    for (const plot of [arena, live]) {
      const picture = plot.querySelector('svg'), height = zoomed ? +picture.dataset.zoom : 1000;
      picture.setAttribute('viewBox', '0 0 1000 ' + height);
    }
    shown = zoomed ? +svg.dataset.zoom : 1000;
    hide();
  });

  document.querySelectorAll('.legend button[data-c]').forEach(
    button => button.addEventListener('click', () => {
    const c = +button.dataset.c, off = !hidden.delete(c);
    if (off) hidden.add(c);
    button.setAttribute('aria-pressed', String(!off));
    document.querySelectorAll('.plot .c' + c + ', .plot .t' + c).forEach(
      e => { e.style.opacity = off ? 0.06 : ''; });
  }));
})();
)js";

}  // namespace stw::picture
