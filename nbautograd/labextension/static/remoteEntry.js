"use strict";(()=>{function y(o,e){let t=e.text.split(`
`),n=s=>t.every((a,i)=>o[s+i]===a);if(n(e.first_line-1))return e.first_line;let r=o.flatMap((s,a)=>n(a)?[a+1]:[]);return r.length===1?r[0]:0}function O(o,e){if(e.cell)return o.find(n=>n.id===e.cell);let t=o.filter(n=>y(n.getSource().split(`
`),e));return t.length===1?t[0]:void 0}var S={en:{apply:"Apply",apply_and_run:"Apply and run",changed_since:"The code has changed since it was checked. Run the cell again.",ghost:"change that was tried",gone:"The checked code is not in a cell of this notebook.",line:"line {line}",untrusted:"This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output."},zh:{apply:"应用",apply_and_run:"应用并运行",changed_since:"代码在检查之后改过。请重新运行这个单元格。",ghost:"试过的修改",gone:"检查过的代码不在这个 notebook 的单元格里。",line:"第 {line} 行",untrusted:"这个 notebook 未受信任，不能应用修改。重新运行单元格即可信任它的输出。"}};var w=o=>(e,t)=>(o==="zh"?S.zh:S.en)[e].replace(/\{(\w+)\}/g,(n,r)=>String(t?.[r]??n));function M({mark:o,checked:e,language:t,from:n,notebook:r},s,{NotebookActions:a}){let i=w(t),u=o.change,d=r.home(e);if(!u)return i("gone");if(!n.trusted)return i("untrusted");if(!d)return i("gone");let g=d.sharedModel.getSource(),b=g.split(`
`),x=y(b,e);if(!x)return i("changed_since");let l=u.line+x-e.first_line-1,c=b.slice(0,l).join(`
`).length+(l?1:0);if(d.sharedModel.transact(()=>d.sharedModel.updateSource(c,c+u.before.length,u.after)),!s)return"";let{panel:f}=r,m=f.content.widgets.filter(({model:p})=>p===d||p===n);return a.runCells(f.content,m,f.sessionContext),""}var Z=/[\u202a-\u202e\u2066-\u2069]/g,Q=/((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)/,X=/\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) \/ d (?=\S)/g,V=/(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))/g;function I(o,e,t=[]){for(let[n,r]of Object.entries(typeof e=="string"?{class:e}:e??{}))if(!(r==null||r===!1))if(n==="on")for(let[s,a]of Object.entries(r))o.addEventListener(s,a);else o.setAttribute(n,r===!0?"":String(r));return o.append(...t.filter(n=>n!=null&&n!==!1).flatMap(n=>n instanceof Node?n:ee(o,String(n).replace(Z,"�")))),o}function ee(o,e){return!(o instanceof HTMLElement)||o.matches("option,pre,style")?[e]:e.replace(X,"d $1 / d ").replace(V," ").split(Q).map((t,n)=>n%2?Object.assign(document.createElement("span"),{className:"whole",textContent:t}):t)}var h=(o,e,...t)=>I(document.createElement(o),e,t);var C=(o,e,t="button")=>h("button",{class:t,on:{click:e}},o);function E(o){let e=o.split(/`([^`\n]+)`/);return I(document.createDocumentFragment().appendChild(h("span")),null,e.map((t,n)=>n%2?h("code",null,t):t))}var _={bug:"✗",risk:"!",explained:"◆"};function A({after:o,lit:e}){return o.split(`
`).map((n,r)=>{let s=[],a=0;for(let[,i,u]of e.filter(([d])=>d===r))s.push(n.slice(a,i),h("mark","nbag-lit",n.slice(i,u))),a=u;return h("span","nbag-row",...s,n.slice(a))})}function P({found:o,line:e},t){let{mark:n,language:r,from:s}=o,a=w(r),i=n.change,u=h("p",{class:"nbag-said",role:"status"}),d=g=>()=>void(u.textContent=t(g));return i&&!s.trusted&&(u.textContent=a("untrusted")),h("section",{class:`nbag-card nbag-${n.tone}`,"aria-label":`${n.kind}, ${a("line",{line:e})}`},h("p",null,h("strong","nbag-kind",`${_[n.tone]} ${n.kind}`)," ",E(n.message)),i&&h("pre",{class:"nbag-change",tabindex:"0"},h("code",null,...A(i))),i&&h("p","nbag-note",E(i.note)),i&&s.trusted&&h("div","nbag-buttons",C(a("apply_and_run"),d(!0),"nbag-button nbag-first"),C(a("apply"),d(!1),"nbag-button")),u)}var z=({found:o,exact:e})=>e&&o.from.trusted&&!!o.mark.change;function H(o,e){let t=e.length?o.toString().split(`
`):[];return e.flatMap(n=>{let r=y(t,n.checked);if(!r)return[];let s=r-n.checked.first_line,a=n.mark.line+s,i=n.mark.change,u=i?i.line+s:0,d=i?u+i.before.split(`
`).length-1:a,g=o.line(Math.min(a,u||a)).from,b=o.line(Math.max(a,d)).to;return[{found:n,line:a,from:g,to:b,change:u,exact:!0}]})}function te({given:o,placed:e},t){let n=H(t.newDoc,o),r=e.flatMap(s=>{if(n.some(({found:g})=>g===s.found))return[];if(t.changes.touchesRange(s.from,s.to))return[];let a=t.startState.doc.line(s.line).from,i=t.newDoc.lineAt(t.changes.mapPos(a,1)).number,[u,d]=[s.from,s.to].map(g=>t.changes.mapPos(g,1));return[{...s,line:i,from:u,to:d,change:0,exact:!1}]});return[...n,...r]}function N({view:o,state:e},t){let n={set:e.StateEffect.define(),release:e.StateEffect.define(),open:e.StateEffect.define()},r=new e.Compartment;class s extends o.WidgetType{constructor(c){super(),this.placed=c}eq(c){return c.placed.found===this.placed.found}toDOM(){return ne(this.placed,t)}}class a extends o.GutterMarker{constructor(c){super(),this.mark=c}eq(c){return c.mark===this.mark}toDOM(){return h("span",`nbag-sign nbag-${this.mark.tone}`,_[this.mark.tone])}}function i({placed:l,released:c},f){let m=l.flatMap(p=>{let{mark:k}=p.found,{from:R,to:J}=f.line(p.line),[F,Y]=k.columns,D=[o.Decoration.mark({class:`nbag-under nbag-${k.tone}`}).range(R+F,Math.min(J,R+Y))];if(z(p)&&!c.includes(p.found)){let v=o.Decoration.widget({widget:new s(p),block:!0,side:1});D.push(v.range(f.line(p.change+W(p)-1).to))}return D.filter(v=>v.from<v.to||v.value.spec.block)});return o.Decoration.set(m,!0)}let u=(l,c)=>({pos:c,above:!0,create:()=>({dom:h("div",null,P(l,f=>t(l,f)))})}),d=e.StateField.define({create:()=>({given:[],placed:[],released:[],opened:null}),update(l,c){let f=l;c.docChanged?f={...f,placed:te(f,c),opened:null}:c.selection&&(f={...f,opened:null});for(let{value:m,is:p}of c.effects.map(k=>({value:k.value,is:k.is.bind(k)})))p(n.set)&&(f={given:m,placed:H(c.newDoc,m),released:[],opened:null}),p(n.release)&&(f={...f,released:[...f.released,m],opened:null}),p(n.open)&&(f={...f,opened:m});return f},provide:l=>[o.EditorView.decorations.compute([l],c=>i(c.field(l),c.doc)),o.showTooltip.compute([l],c=>{let{placed:f,opened:m}=c.field(l),p=f.find(({found:k})=>k===m);return p?u(p,c.doc.line(p.line).from):null})]}),g=o.gutter({class:"nbag-gutter",markers(l){let{placed:c}=l.state.field(d),f=c.map(m=>new a(m.found.mark).range(l.state.doc.line(m.line).from));return e.RangeSet.of(f,!0)},domEventHandlers:{mousedown(l,c){let{placed:f}=l.state.field(d),m=f.find(({line:p})=>l.state.doc.line(p).from===c.from);return m&&l.dispatch({effects:n.open.of(m.found)}),!!m}}}),b=o.hoverTooltip((l,c)=>{let{placed:f}=l.state.field(d),m=l.state.doc.lineAt(c).number,p=f.find(k=>k.line===m);return p?u(p,l.state.doc.line(m).from):null}),x=o.EditorView.updateListener.of(l=>{let c=L(l.view,d);l.view.dom.parentElement?.classList.toggle("nbag-at-mark",!!c)});return{field:d,effects:n,extension:[d,b,x,r.of([])],show(l,c){let f=r.reconfigure(c.length?g:[]);l.dispatch({effects:[n.set.of(c),f]})}}}var W=({found:o})=>o.mark.change?.before.split(`
`).length??0;function L(o,e){let{doc:t,selection:n}=o.state,{placed:r,released:s}=o.state.field(e),a=t.lineAt(n.main.head).number;return r.find(i=>z(i)&&!s.includes(i.found)&&(i.line===a||a>=i.change&&a<i.change+W(i)))}function ne(o,e){let{mark:t,language:n}=o.found,r=t.change,s=w(n),a=h("div",{class:"nbag-ghost",role:"note","aria-label":s("ghost")},h("code",null,...A(r)),h("span","nbag-note",E(r.note)),h("kbd","nbag-key","Tab"));return a.addEventListener("mousedown",i=>{i.preventDefault(),e(o,!1)}),a}var oe="application/vnd.nbautograd.marks+json",j=class{constructor(e,t){this.panel=e,this.show=t,this.read=new Map,this.found=new Map,this.cells.changed.connect(()=>this.follow()),this.follow()}get cells(){return this.panel.content.model.cells}get all(){return Array.from({length:this.cells.length},(e,t)=>this.cells.get(t))}home(e){let t=O(this.all.map(n=>n.sharedModel),e);return this.all.find(n=>n.sharedModel===t)}follow(){let e=this.all.filter(t=>t.type==="code");for(let[t,{changed:n}]of this.read)e.includes(t)||(t.outputs?.changed.disconnect(n),this.read.delete(t));for(let t of e)if(!this.read.has(t)){let n=()=>{this.read.set(t,{changed:n,outputs:$(t)}),this.refresh()};this.read.set(t,{changed:n,outputs:$(t)}),t.outputs?.changed.connect(n),t.contentChanged.connect(()=>this.again())}this.refresh()}again(){[...this.read.values()].some(({outputs:t})=>t.some(n=>n.checked.some(r=>!r.cell)))&&this.refresh()}refresh(){let e=this.all.map(s=>s.sharedModel),t=new Map,n=new Set;for(let[s,{outputs:a}]of this.read)for(let{checked:i,marks:u,language:d}of a){let g=i.map(b=>O(e,b));for(let b of u){let x=g[b.checked],l=i[b.checked],c=JSON.stringify([x?.id,l.text,b]);if(!x||n.has(c))continue;n.add(c);let f=t.get(x.id)??[];t.set(x.id,[...f,{mark:b,checked:l,language:d,from:s,notebook:this}])}}let r=this.found;this.found=t;for(let s of new Set([...r.keys(),...t.keys()]))re(r.get(s),t.get(s))||this.show(s,t.get(s)??[])}};function $({outputs:o}){return o?Array.from({length:o.length},(e,t)=>o.get(t).data[oe]).filter(e=>e&&Array.isArray(e.marks)&&Array.isArray(e.checked)):[]}function re(o=[],e=[]){return o.length===e.length&&o.every(({mark:t,checked:n,from:r},s)=>{let a=e[s];return t===a.mark&&n===a.checked&&r===a.from})}var K=`.nbag-under {
  text-decoration-line: underline;
  text-decoration-thickness: 1.5px;
  text-underline-offset: 2px;
  text-decoration-skip-ink: none;
}
.nbag-under.nbag-bug {
  text-decoration-style: wavy;
  text-decoration-color: var(--nbag-bug);
}
.nbag-under.nbag-risk {
  text-decoration-style: dashed;
  text-decoration-color: var(--nbag-risk);
}
.nbag-under.nbag-explained {
  text-decoration-style: double;
  text-decoration-color: var(--nbag-explained);
}
body {
  --nbag-bug: #c4162a;
  --nbag-risk: #8a5a00;
  --nbag-explained: #6f42c1;
  --nbag-new: #d7f2dd;
  --nbag-faint: #57606a;
}
body[data-jp-theme-light="false"] {
  --nbag-bug: #ff7b83;
  --nbag-risk: #e3b341;
  --nbag-explained: #c297ff;
  --nbag-new: #1d4d2b;
  --nbag-faint: #a8b1bb;
}
.nbag-gutter {
  min-width: 1.4em;
}
.nbag-sign {
  display: inline-block;
  width: 1.2em;
  font-weight: bold;
  text-align: center;
  cursor: pointer;
}
.nbag-sign.nbag-bug,
.nbag-card.nbag-bug .nbag-kind {
  color: var(--nbag-bug);
}
.nbag-sign.nbag-risk,
.nbag-card.nbag-risk .nbag-kind {
  color: var(--nbag-risk);
}
.nbag-sign.nbag-explained,
.nbag-card.nbag-explained .nbag-kind {
  color: var(--nbag-explained);
}
.nbag-ghost {
  display: flex;
  flex-wrap: wrap;
  gap: 0 1.5em;
  align-items: baseline;
  margin-top: 3px;
  padding: 0 6px;
  background: var(--jp-layout-color2);
  cursor: pointer;
}
.nbag-ghost code,
.nbag-change code {
  font: inherit;
  color: var(--jp-content-font-color1);
  background: none;
  padding: 0;
}
.nbag-row {
  display: block;
  min-height: 1.2em;
  white-space: pre;
}
mark.nbag-lit {
  color: inherit;
  background: var(--nbag-new);
  border-radius: 2px;
  font-weight: bold;
}
.nbag-note {
  color: var(--nbag-faint);
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size1);
}
.nbag-key {
  visibility: hidden;
  padding: 0 6px;
  border: 1px solid var(--nbag-faint);
  border-radius: 3px;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font: var(--jp-ui-font-size0) var(--jp-ui-font-family);
}
.nbag-at-mark .nbag-key {
  visibility: visible;
}
.nbag-card {
  max-width: min(46em, 80vw);
  padding: 8px 12px;
  border-left: 4px solid var(--nbag-bug);
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font: var(--jp-ui-font-size1) / 1.45 var(--jp-ui-font-family);
}
.nbag-card.nbag-risk {
  border-left: 4px dashed var(--nbag-risk);
}
.nbag-card.nbag-explained {
  border-left: 6px double var(--nbag-explained);
}
.nbag-card p {
  margin: 0 0 6px;
}
.nbag-card p:empty {
  display: none;
}
.nbag-card code {
  color: var(--jp-content-font-color1);
  background: none;
  font-family: var(--jp-code-font-family);
}
.nbag-change {
  overflow-x: auto;
  margin: 0 0 6px;
  padding: 4px 6px;
  background: var(--jp-layout-color2);
  font: var(--jp-code-font-size) / 1.4 var(--jp-code-font-family);
}
.nbag-buttons {
  display: flex;
  gap: 8px;
  margin: 4px 0;
}
.nbag-button {
  padding: 3px 12px;
  border: 1px solid var(--jp-ui-font-color2);
  border-radius: 3px;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font: inherit;
  cursor: pointer;
}
.nbag-button.nbag-first {
  border-color: #1a5fb4;
  color: #fff;
  background: #1a5fb4;
}
.nbag-button:focus-visible {
  outline: 2px solid var(--jp-brand-color1);
  outline-offset: 2px;
}
@media (forced-colors: active) {
  mark.nbag-lit {
    color: HighlightText;
    background: Highlight;
    forced-color-adjust: none;
  }
  .nbag-under {
    text-decoration-color: CanvasText;
  }
}
`;var T=class{constructor(e,t,n){this.app=e,this.modules=t,this.tracker=n,this.views=new Map,this.found=new Map,this.marks=N(t,(r,s)=>M(r.found,s,t.notebook))}editor({model:e}){let t=e.sharedModel;if(t?.cell_type!=="code")return[];let n=this.modules.view.ViewPlugin.define(r=>{let s=this.views.get(t.id)??new Set;this.views.set(t.id,s.add(r));let a=this.found.get(t.id);return a&&queueMicrotask(()=>this.marks.show(r,a)),{destroy:()=>s.delete(r)}});return[this.marks.extension,n]}async follow(e){await e.context.ready,new j(e,(t,n)=>{this.found.set(t,n);for(let r of this.views.get(t)??[])this.marks.show(r,n)})}here(){let e=this.tracker.currentWidget?.content.activeCell,t=e?.editor?.editor,n=t&&L(t,this.marks.field);return n?{view:t,placed:n}:null}apply(e){let t=this.here();t&&M(t.placed.found,e,this.modules.notebook)}fromReport(e){let{change:t,run:n}=e.detail,r=e.composedPath().find(i=>i instanceof HTMLElement&&i.classList.contains("jp-Cell")),s=[...this.found.values()].flat(),a=s.find(({mark:i,from:u,notebook:d})=>d.panel.content.widgets.find(({node:g})=>g===r)?.model===u&&i.change?.line===t.line&&B(i.change?.after??"")===B(t.after));e.detail.refused=a?M(a,n,this.modules.notebook):w(document.documentElement.lang)("gone")}async next(){let e=this.tracker.currentWidget?.content;if(!e)return;let t=e.mode==="edit",n=t?se(e.activeCell):0,r=e.widgets.flatMap((g,b)=>(this.found.get(g.model.sharedModel.id)??[]).flatMap(x=>{let l=y(g.model.sharedModel.getSource().split(`
`),x.checked),c=x.mark.line+l-x.checked.first_line;return l?[{at:b,cell:g,found:x,line:c}]:[]}));r.sort((g,b)=>g.at-b.at||g.line-b.line);let s=e.activeCellIndex,a=r.find(g=>g.at>s||g.at===s&&g.line>n),i=a??r[0];if(!i)return;e.activeCellIndex=i.at,e.mode="edit",await i.cell.ready;let{editor:u}=i.cell,{to:d}=u.editor.state.doc.line(i.line);u.focus(),u.editor.dispatch({selection:{anchor:d},scrollIntoView:!0,effects:this.marks.effects.open.of(i.found)})}release(){let e=this.here();e?.view.dispatch({effects:this.marks.effects.release.of(e.placed.found)})}},B=o=>o.trim().split(`
`).map(e=>e.trim()).join(`
`);function se(o){let e=o?.editor?.editor.state;return e?e.doc.lineAt(e.selection.main.head).number:0}function G(o){let{codemirror:e,notebook:t}=o;return{id:"nbautograd:plugin",autoStart:!0,requires:[t.INotebookTracker,e.IEditorExtensionRegistry],activate(n,r,s){document.head.append(Object.assign(document.createElement("style"),{textContent:K}));let a=new T(n,o,r),{EditorExtensionRegistry:i}=e;s.addExtension({name:"nbautograd:marks",factory:d=>i.createImmutableExtension(a.editor(d))}),r.forEach(d=>void a.follow(d)),r.widgetAdded.connect((d,g)=>void a.follow(g));let{commands:u}=n;u.addCommand("nbautograd:apply",{execute:()=>a.apply(!1)}),u.addCommand("nbautograd:apply-and-run",{execute:()=>a.apply(!0)}),u.addCommand("nbautograd:release",{execute:()=>a.release()}),u.addCommand("nbautograd:next-finding",{execute:()=>a.next()}),document.addEventListener("nbautograd:apply",d=>a.fromReport(d)),document.documentElement.dataset.nbautogradLab="1"}}}var U={};async function ie(o){let e=Object.values(U[o]??{}),t=e.find(n=>n.loaded)??e[0];if(!t)throw new Error(`nbautograd: this application has no ${o}`);return(await t.get())()}var ce={init(o){U=o},async get(){let[o,e,t,n]=await Promise.all(["@jupyterlab/codemirror","@jupyterlab/notebook","@codemirror/view","@codemirror/state"].map(ie)),r=[G({codemirror:o,notebook:e,view:t,state:n})];return()=>({__esModule:!0,default:r})}},q=window;q._JUPYTERLAB={...q._JUPYTERLAB,nbautograd:ce};})();
