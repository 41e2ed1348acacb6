#include "planner/picture/style.h"

namespace stw::picture {

// The class colours maximize the smallest distance in OKLab under normal vision and three simulated
// deficiencies (Machado 2009): 0.11 on light, 0.10 on dark. tests/tools/plans/picture_test.py checks
// contrasts.
const char* const palette = R"css(
:root, svg:root { color-scheme: light dark;
  --page: #ffffff; --panel: #f6f7f9; --text: #16181d; --soft: #565c67; --grid: #dfe2e7; --axis: #8b919c;
  --focus: #1f5fd0;
  --c0: #303a73; --c1: #8a3dc0; --c2: #2a92ea; --c3: #c77b0a; --c4: #006f63; --c5: #878597; --c6: #c50e02;
  --on0: #ffffff; --on1: #ffffff; --on2: #0b0d10; --on3: #0b0d10; --on4: #ffffff; --on5: #0b0d10;
  --on6: #ffffff; }
@media (prefers-color-scheme: dark) { :root, svg:root {
  --page: #14171c; --panel: #1b1f26; --text: #e8eaee; --soft: #a9afba; --grid: #2c323c; --axis: #6b7280;
  --focus: #8fb8ff;
  --c0: #2f9bff; --c1: #d964bd; --c2: #93d3ff; --c3: #e8b62f; --c4: #168a6a; --c5: #a3ab90; --c6: #f4284a;
  --on0: #0b0d10; --on1: #0b0d10; --on2: #0b0d10; --on3: #0b0d10; --on4: #0b0d10; --on5: #0b0d10;
  --on6: #0b0d10; } }
)css";

// A page has thousands of some elements, so their CSS classes have short names. c0 to c6 fill a mark in the
// colour of its memory class, t0 to t6 colour the text on it, and o outlines it. f: only without the zoom; z:
// only in the zoom; m: not on phones; n: numbers, aligned to the right; w: text that may wrap anywhere.
const char* const page_style = R"css(
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--text); line-height: 1.5;
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
main { max-width: 1160px; margin: 0 auto; padding: 28px 24px 48px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0; font-weight: 650; }
h2 { font-size: 17px; margin: 0 0 4px; font-weight: 650; }
p { margin: 0 0 12px; max-width: 78ch; }
section { margin-top: 36px; min-width: 0; }
.soft, figcaption, th { color: var(--soft); font-weight: 400; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 14px 24px;
  margin: 22px 0 0;
  padding: 16px 0; border-top: 1px solid var(--grid); border-bottom: 1px solid var(--grid); }
.figures div { min-width: 0; }
dt { color: var(--soft); font-size: 13px; }
dd { margin: 0; font-size: 19px; font-weight: 600; line-height: 1.3; }
dd small { display: block; font-size: 13px; font-weight: 400; color: var(--soft); }
.short { margin: 18px 0 0; padding: 12px 16px; border: 1px solid var(--c6); border-left-width: 5px;
  max-width: none; }
.short ul, .decisions { margin: 0; padding-left: 1.2em; }
.decisions li { margin: 0 0 8px; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 6px; margin: 10px 0 12px; padding: 0; }
.legend button { font: inherit; font-size: 13px; color: var(--text); background: none;
  border: 1px solid var(--grid);
  border-radius: 5px; padding: 4px 9px 4px 7px; min-height: 30px; cursor: pointer; }
#zoom { margin-left: auto; text-decoration: none; color: var(--text); }
#zoom[aria-pressed=true] { border-color: var(--text); }
.legend button[data-c][aria-pressed=false] { color: var(--soft); text-decoration: line-through; }
.legend button[aria-pressed=false] i { opacity: .25; }
.legend i, .tip i, td i { display: inline-block; width: 11px; height: 11px; margin-right: 7px;
  border-radius: 2px; }
figure { margin: 0; }
.frame { display: grid; grid-template-columns: 74px minmax(0, 1fr); }
.ys, .xs { position: relative; font-size: 12px; color: var(--soft); }
.ys span { position: absolute; right: 9px; transform: translateY(50%); white-space: nowrap; }
.xs { grid-column: 2; height: 44px; }
.xs.plain { height: 40px; }
.xs span { position: absolute; top: 4px; transform: translateX(-50%); white-space: nowrap; }
.xs b { position: absolute; top: 22px; border-top: 1px solid var(--axis); font-weight: 400;
  color: var(--text);
  display: flex; justify-content: center; white-space: nowrap; }
.xs b u { text-decoration: none; padding: 0 3px; background: var(--page); transform: translateY(1px); }
.xs i { position: absolute; top: 1px; height: 3px; min-width: 1px; background: var(--text); }
.z, .zoomed .f { display: none; } .zoomed .z { display: block; }
.xs .name { top: 21px; left: 50%; }
.plot { position: relative; height: clamp(300px, 62vh, 580px); background: var(--panel);
  border-bottom: 1px solid var(--axis);
  outline-offset: 2px; touch-action: pan-y; }
.plot.low { height: clamp(200px, 34vh, 300px); }
.plot > svg { position: absolute; inset: 0; width: 100%; height: 100%; display: block; overflow: hidden; }
.grid { stroke: var(--grid); }
.marks rect, .plot path { stroke-width: .5; vector-effect: non-scaling-stroke; }
.grid, .edge, .peak, .curve, .dot { vector-effect: non-scaling-stroke; }
.edge { stroke: var(--axis); }
.peak { stroke: var(--text); stroke-dasharray: 4 3; }
.marks .o { stroke: var(--panel); stroke-width: .8; }
.plot .curve { fill: none; stroke: var(--c0); stroke-width: 1.6; }
.plot .dot { stroke: var(--c0); stroke-width: 6; stroke-linecap: round; }
.plot .knee { stroke: var(--c3); stroke-width: 18; }
.plot .here { stroke: var(--c6); stroke-width: 16; }
.names span, .numbers span { position: absolute; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; font-size: 11px; line-height: 14px;
  padding: 0 5px; pointer-events: none; }
.numbers span { overflow: visible; padding: 0; font-weight: 600; transform: translate(-50%, -50%);
  color: var(--on3); }
.numbers .current { font-size: 12px; transform: translate(-50%, -170%); color: var(--text); padding: 0 3px;
  background: var(--panel); }
.mark { position: absolute; pointer-events: none; outline: 2px solid var(--text);
  box-shadow: 0 0 0 3px var(--page); display: none; }
.cross { position: absolute; top: 0; bottom: 0; width: 0; border-left: 1px solid var(--text); opacity: .55;
  pointer-events: none; display: none; }
.peak-note { position: absolute; bottom: 100%; padding: 0 6px 2px; font-size: 13px; white-space: nowrap;
  border: 0 solid var(--text); }
.with-note { padding-top: 24px; }
.tip { position: fixed; z-index: 5; left: 0; top: 0; display: none;
  max-width: min(380px, calc(100vw - 16px)); padding: 9px 12px;
  font-size: 13px; line-height: 1.4; background: var(--page); color: var(--text);
  border: 1px solid var(--axis); border-radius: 6px;
  box-shadow: 0 3px 14px rgb(0 0 0 / .18); pointer-events: none; overflow-wrap: anywhere; }
.tip strong { display: block; font-size: 14px; }
.tip p { margin: 3px 0 0; }
.tip table { margin: 4px 0 0; }
.tip td { padding: 0 0 0 10px; border: 0; } .tip td:first-child { padding: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
caption { text-align: left; color: var(--soft); padding-bottom: 6px; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--grid);
  vertical-align: top; }
thead th { font-size: 13px; } th[scope=row] { color: var(--text); white-space: nowrap; }
.n { text-align: right; white-space: nowrap; }
td .bar { height: 9px; min-width: 1px; margin-top: 6px; border-radius: 1px; }
tfoot th, tfoot td { font-weight: 600; color: var(--text); border-bottom: 0; }
.two { display: grid; grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr); gap: 36px; }
.two section { margin-top: 0; }
.two { margin-top: 36px; }
.bars { width: 34%; }
details { margin-top: 24px; } summary { cursor: pointer; padding: 4px 0; color: var(--text); }
footer { margin-top: 36px; padding-top: 12px; border-top: 1px solid var(--grid); font-size: 13px;
  color: var(--soft); }
:focus-visible { outline: 2px solid var(--focus); }
td.w { overflow-wrap: anywhere; min-width: 11em; }
@media (max-width: 720px) {
  main { padding: 18px 14px 36px; }
  h1 { font-size: 20px; }
  .two { grid-template-columns: minmax(0, 1fr); }
  .figures { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 12px 16px; }
  .frame { grid-template-columns: 56px minmax(0, 1fr); }
  .ys, .xs { font-size: 11px; } .ys span { right: 6px; }
  .m { display: none; }
  dd { font-size: 17px; }
  .legend button { min-height: 36px; }
  .plot { height: 400px; } .plot.low { height: 220px; }
}
@media print { .tip, .cross, .mark { display: none; } }
)css";

}  // namespace stw::picture
