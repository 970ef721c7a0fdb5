"use strict";(()=>{function y(o,e){let t=e.text.split(`
`),n=s=>t.every((r,i)=>o[s+i]===r);if(n(e.first_line-1))return e.first_line;let a=o.flatMap((s,r)=>n(r)?[r+1]:[]);return a.length===1?a[0]:0}function _(o,e){if(e.cell)return o.find(n=>n.id===e.cell);let t=o.filter(n=>y(n.getSource().split(`
`),e));return t.length===1?t[0]:void 0}var C={en:{apply:"Apply",apply_and_run:"Apply and run",changed_since:"The code has changed since it was checked. Run the cell again.","command.apply":"Autograd: apply the change of this line","command.apply_and_run":"Autograd: apply the change of this line and run","command.audit":"Autograd: audit this cell","command.check":"Autograd: check the Function of this cell","command.explain":"Autograd: explain the last error","command.freeze":"Autograd: freeze this notebook as a page","command.graph":"Autograd: show the graph of the selected variable","command.next":"Autograd: go to the next finding","command.release":"Autograd: hide the change of this line",ghost:"change that was tried",gone:"The checked code is not in a cell of this notebook.",line:"line {line}",untrusted:"This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output."},zh:{apply:"应用",apply_and_run:"应用并运行",changed_since:"代码在检查之后改过。请重新运行这个单元格。","command.apply":"Autograd：应用这一行的修改","command.apply_and_run":"Autograd：应用这一行的修改并运行","command.audit":"Autograd：审查这个单元格","command.check":"Autograd：检查这个单元格的 Function","command.explain":"Autograd：解释最近一次错误","command.freeze":"Autograd：把这个 notebook 冻结成网页","command.graph":"Autograd：显示所选变量的计算图","command.next":"Autograd：转到下一处发现","command.release":"Autograd：隐藏这一行的修改",ghost:"试过的修改",gone:"检查过的代码不在这个 notebook 的单元格里。",line:"第 {line} 行",untrusted:"这个 notebook 未受信任，不能应用修改。重新运行单元格即可信任它的输出。"}};var w=o=>(e,t)=>(o==="zh"?C.zh:C.en)[e].replace(/\{(\w+)\}/g,(n,a)=>String(t?.[a]??n));function E({mark:o,checked:e,language:t,from:n,notebook:a},s,{NotebookActions:r}){let i=w(t),g=o.change,f=a.home(e);if(!g)return i("gone");if(!n.trusted)return i("untrusted");if(!f)return i("gone");let l=f.sharedModel.getSource(),h=l.split(`
`),x=y(h,e);if(!x)return i("changed_since");let d=g.line+x-e.first_line-1,c=h.slice(0,d).join(`
`).length+(d?1:0);if(f.sharedModel.transact(()=>f.sharedModel.updateSource(c,c+g.before.length,g.after)),!s)return"";let{panel:u}=a,b=u.content.widgets.filter(({model:p})=>p===f||p===n);return r.runCells(u.content,b,u.sessionContext),""}var Q=/^\s*%(re)?load_ext\s+nbautograd\b/m,X=/[\p{L}_][\p{L}\p{N}_.]*/gu;function V(o){let e=o?.editor?.editor.state;if(!e)return"";let{from:t,to:n,head:a}=e.selection.main,s=e.doc.toString();return t<n?s.slice(t,n).trim():[...s.matchAll(X)].find(({0:r,index:i})=>i<=a&&a<=i+r.length)?.[0]??""}var ee={check:()=>({above:"%%autograd_function --inputs "}),audit:()=>({above:"%%autograd_audit",runs:!0}),explain:()=>({line:"%autograd_explain --run"}),graph({content:o}){let e=V(o.activeCell);return e?{line:`%autograd_graph ${e}`}:null},freeze:({context:o})=>({line:`!nbautograd freeze "${o.path.split("/").pop()}"`,saves:!0})},M=class{constructor(e,t,n,a){this.app=e,this.tracker=t,this.actions=n.notebook.NotebookActions,this.say=w(a),this.ids=[]}add(e,t,n){let a=`nbautograd:${t}`;this.ids.push(a),this.app.commands.addCommand(a,{label:this.say(e),execute:n,isEnabled:()=>!!this.tracker.currentWidget})}addWriting(){for(let[e,t]of Object.entries(ee)){let n=`command.${e}`;this.add(n,e,()=>{let a=this.tracker.currentWidget,s=a&&t(a);if(s)return this.write(a,s)})}}async write(e,{line:t,above:n,runs:a,saves:s}){let{content:r}=e,i=r.activeCell;if(s&&await e.context.save(),t){let x=r.widgets.some(({model:c})=>Q.test(c.sharedModel.getSource()));this.actions.insertBelow(r);let d=r.activeCell;return d.model.sharedModel.setSource(x?t:`%load_ext nbautograd
${t}`),this.actions.runCells(r,[d],e.sessionContext)}if(!n||i?.model.type!=="code"||!i.editor)return;let{sharedModel:g}=i.model,f=g.getSource(),l=n.split(" ")[0];if(f.startsWith(l)||g.transact(()=>g.updateSource(0,0,`${n}
`)),a)return this.actions.runCells(r,[i],e.sessionContext);r.mode="edit",i.editor.focus();let{doc:h}=i.editor.editor.state;i.editor.editor.dispatch({selection:{anchor:h.line(1).to}})}};var te=/[\u202a-\u202e\u2066-\u2069]/g,ne=/((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)/,oe=/\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) \/ d (?=\S)/g,ae=/(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))/g;function I(o,e,t=[]){for(let[n,a]of Object.entries(typeof e=="string"?{class:e}:e??{}))if(!(a==null||a===!1))if(n==="on")for(let[s,r]of Object.entries(a))o.addEventListener(s,r);else o.setAttribute(n,a===!0?"":String(a));return o.append(...t.filter(n=>n!=null&&n!==!1).flatMap(n=>n instanceof Node?n:re(o,String(n).replace(te,"�")))),o}function re(o,e){return!(o instanceof HTMLElement)||o.matches("option,pre,style")?[e]:e.replace(oe,"d $1 / d ").replace(ae," ").split(ne).map((t,n)=>n%2?Object.assign(document.createElement("span"),{className:"whole",textContent:t}):t)}var m=(o,e,...t)=>I(document.createElement(o),e,t);var S=(o,e,t="button")=>m("button",{class:t,on:{click:e}},o);function A(o){let e=o.split(/`([^`\n]+)`/);return I(document.createDocumentFragment().appendChild(m("span")),null,e.map((t,n)=>n%2?m("code",null,t):t))}var O={bug:"✗",risk:"!",explained:"◆"};function L({after:o,lit:e}){return o.split(`
`).map((n,a)=>{let s=[],r=0;for(let[,i,g]of e.filter(([f])=>f===a))s.push(n.slice(r,i),m("mark","nbag-lit",n.slice(i,g))),r=g;return m("span","nbag-row",...s,n.slice(r))})}function W({found:o,line:e},t){let{mark:n,language:a,from:s}=o,r=w(a),i=n.change,g=m("p",{class:"nbag-said",role:"status"}),f=l=>()=>void(g.textContent=t(l));return i&&!s.trusted&&(g.textContent=r("untrusted")),m("section",{class:`nbag-card nbag-${n.tone}`,"aria-label":`${n.kind}, ${r("line",{line:e})}`},m("p",null,m("strong","nbag-kind",`${O[n.tone]} ${n.kind}`)," ",A(n.message)),i&&m("pre",{class:"nbag-change",tabindex:"0"},m("code",null,...L(i))),i&&m("p","nbag-note",A(i.note)),i&&s.trusted&&m("div","nbag-buttons",S(r("apply_and_run"),f(!0),"nbag-button nbag-first"),S(r("apply"),f(!1),"nbag-button")),g)}var $=({found:o,exact:e})=>e&&o.from.trusted&&!!o.mark.change;function N(o,e){let t=e.length?o.toString().split(`
`):[];return e.flatMap(n=>{let a=y(t,n.checked);if(!a)return[];let s=a-n.checked.first_line,r=n.mark.line+s,i=n.mark.change,g=i?i.line+s:0,f=i?g+i.before.split(`
`).length-1:r,l=o.line(Math.min(r,g||r)).from,h=o.line(Math.max(r,f)).to;return[{found:n,line:r,from:l,to:h,change:g,exact:!0}]})}function se({given:o,placed:e},t){let n=N(t.newDoc,o),a=e.flatMap(s=>{if(n.some(({found:l})=>l===s.found))return[];if(t.changes.touchesRange(s.from,s.to))return[];let r=t.startState.doc.line(s.line).from,i=t.newDoc.lineAt(t.changes.mapPos(r,1)).number,[g,f]=[s.from,s.to].map(l=>t.changes.mapPos(l,1));return[{...s,line:i,from:g,to:f,change:0,exact:!1}]});return[...n,...a]}function P({view:o,state:e},t){let n={set:e.StateEffect.define(),release:e.StateEffect.define(),open:e.StateEffect.define()},a=new e.Compartment;class s extends o.WidgetType{constructor(c){super(),this.placed=c}eq(c){return c.placed.found===this.placed.found}toDOM(){return ie(this.placed,t)}}class r extends o.GutterMarker{constructor(c){super(),this.mark=c}eq(c){return c.mark===this.mark}toDOM(){return m("span",`nbag-sign nbag-${this.mark.tone}`,O[this.mark.tone])}}function i({placed:d,released:c},u){let b=d.flatMap(p=>{let{mark:k}=p.found,{from:z,to:J}=u.line(p.line),[Y,Z]=k.columns,D=[o.Decoration.mark({class:`nbag-under nbag-${k.tone}`}).range(z+Y,Math.min(J,z+Z))];if($(p)&&!c.includes(p.found)){let v=o.Decoration.widget({widget:new s(p),block:!0,side:1});D.push(v.range(u.line(p.change+H(p)-1).to))}return D.filter(v=>v.from<v.to||v.value.spec.block)});return o.Decoration.set(b,!0)}let g=(d,c)=>({pos:c,above:!0,create:()=>({dom:m("div",null,W(d,u=>t(d,u)))})}),f=e.StateField.define({create:()=>({given:[],placed:[],released:[],opened:null}),update(d,c){let u=d;c.docChanged?u={...u,placed:se(u,c),opened:null}:c.selection&&(u={...u,opened:null});for(let{value:b,is:p}of c.effects.map(k=>({value:k.value,is:k.is.bind(k)})))p(n.set)&&(u={given:b,placed:N(c.newDoc,b),released:[],opened:null}),p(n.release)&&(u={...u,released:[...u.released,b],opened:null}),p(n.open)&&(u={...u,opened:b});return u},provide:d=>[o.EditorView.decorations.compute([d],c=>i(c.field(d),c.doc)),o.showTooltip.compute([d],c=>{let{placed:u,opened:b}=c.field(d),p=u.find(({found:k})=>k===b);return p?g(p,c.doc.line(p.line).from):null})]}),l=o.gutter({class:"nbag-gutter",markers(d){let{placed:c}=d.state.field(f),u=c.map(b=>new r(b.found.mark).range(d.state.doc.line(b.line).from));return e.RangeSet.of(u,!0)},domEventHandlers:{mousedown(d,c){let{placed:u}=d.state.field(f),b=u.find(({line:p})=>d.state.doc.line(p).from===c.from);return b&&d.dispatch({effects:n.open.of(b.found)}),!!b}}}),h=o.hoverTooltip((d,c)=>{let{placed:u}=d.state.field(f),b=d.state.doc.lineAt(c).number,p=u.find(k=>k.line===b);return p?g(p,d.state.doc.line(b).from):null}),x=o.EditorView.updateListener.of(d=>{let c=T(d.view,f);d.view.dom.parentElement?.classList.toggle("nbag-at-mark",!!c)});return{field:f,effects:n,extension:[f,h,x,a.of([])],show(d,c){let u=a.reconfigure(c.length?l:[]);d.dispatch({effects:[n.set.of(c),u]})}}}var H=({found:o})=>o.mark.change?.before.split(`
`).length??0;function T(o,e){let{doc:t,selection:n}=o.state,{placed:a,released:s}=o.state.field(e),r=t.lineAt(n.main.head).number;return a.find(i=>$(i)&&!s.includes(i.found)&&(i.line===r||r>=i.change&&r<i.change+H(i)))}function ie(o,e){let{mark:t,language:n}=o.found,a=t.change,s=w(n),r=m("div",{class:"nbag-ghost",role:"note","aria-label":s("ghost")},m("code",null,...L(a)),m("span","nbag-note",A(a.note)),m("kbd","nbag-key","Tab"));return r.addEventListener("mousedown",i=>{i.preventDefault(),e(o,!1)}),r}var ce="application/vnd.nbautograd.marks+json",j=class{constructor(e,t){this.panel=e,this.show=t,this.read=new Map,this.found=new Map,this.cells.changed.connect(()=>this.follow()),this.follow()}get cells(){return this.panel.content.model.cells}get all(){return Array.from({length:this.cells.length},(e,t)=>this.cells.get(t))}home(e){let t=_(this.all.map(n=>n.sharedModel),e);return this.all.find(n=>n.sharedModel===t)}follow(){let e=this.all.filter(t=>t.type==="code");for(let[t,{changed:n}]of this.read)e.includes(t)||(t.outputs?.changed.disconnect(n),t.stateChanged.disconnect(n),this.read.delete(t));for(let t of e)if(!this.read.has(t)){let n=()=>void Promise.resolve().then(()=>this.reread(t));this.read.set(t,{changed:n,outputs:B(t)}),t.outputs?.changed.connect(n),t.stateChanged.connect(n),t.contentChanged.connect(()=>this.again())}this.refresh()}reread(e){let t=this.read.get(e),n=B(e);!t||!n.length&&e.executionState==="running"||(t.outputs=n,this.refresh())}again(){[...this.read.values()].some(({outputs:t})=>t.some(n=>n.checked.some(a=>!a.cell)))&&this.refresh()}refresh(){let e=this.all.map(s=>s.sharedModel),t=new Map,n=new Set;for(let[s,{outputs:r}]of this.read)for(let{checked:i,marks:g,language:f}of r){let l=i.map(h=>_(e,h));for(let h of g){let x=l[h.checked],d=i[h.checked],c=JSON.stringify([x?.id,d.text,h]);if(!x||n.has(c))continue;n.add(c);let u=t.get(x.id)??[];t.set(x.id,[...u,{mark:h,checked:d,language:f,from:s,notebook:this}])}}let a=this.found;this.found=t;for(let s of new Set([...a.keys(),...t.keys()]))de(a.get(s),t.get(s))||this.show(s,t.get(s)??[])}};function B({outputs:o}){return o?Array.from({length:o.length},(e,t)=>o.get(t).data[ce]).filter(e=>e&&Array.isArray(e.marks)&&Array.isArray(e.checked)):[]}function de(o=[],e=[]){return o.length===e.length&&o.every(({mark:t,checked:n,from:a},s)=>{let r=e[s];return t===r.mark&&n===r.checked&&a===r.from})}var K=`.nbag-under {
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
`;var R=class{constructor(e,t,n){this.app=e,this.modules=t,this.tracker=n,this.views=new Map,this.found=new Map,this.marks=P(t,(a,s)=>E(a.found,s,t.notebook))}editor({model:e}){let t=e.sharedModel;if(t?.cell_type!=="code")return[];let n=this.modules.view.ViewPlugin.define(a=>{let s=this.views.get(t.id)??new Set;this.views.set(t.id,s.add(a));let r=this.found.get(t.id);return r&&queueMicrotask(()=>this.marks.show(a,r)),{destroy:()=>s.delete(a)}});return[this.marks.extension,n]}async follow(e){await e.context.ready,new j(e,(t,n)=>{this.found.set(t,n);for(let a of this.views.get(t)??[])this.marks.show(a,n)})}here(){let e=this.tracker.currentWidget?.content.activeCell,t=e?.editor?.editor,n=t&&T(t,this.marks.field);return n?{view:t,placed:n}:null}apply(e){let t=this.here();t&&E(t.placed.found,e,this.modules.notebook)}fromReport(e){let{change:t,run:n}=e.detail,a=e.composedPath().find(i=>i instanceof HTMLElement&&i.classList.contains("jp-Cell")),s=[...this.found.values()].flat(),r=s.find(({mark:i,from:g,notebook:f})=>f.panel.content.widgets.find(({node:l})=>l===a)?.model===g&&i.change?.line===t.line&&G(i.change?.after??"")===G(t.after));e.detail.refused=r?E(r,n,this.modules.notebook):w(document.documentElement.lang)("gone")}async next(){let e=this.tracker.currentWidget?.content;if(!e)return;let t=e.mode==="edit",n=t?ue(e.activeCell):0,a=e.widgets.flatMap((l,h)=>(this.found.get(l.model.sharedModel.id)??[]).flatMap(x=>{let d=y(l.model.sharedModel.getSource().split(`
`),x.checked),c=x.mark.line+d-x.checked.first_line;return d?[{at:h,cell:l,found:x,line:c}]:[]}));a.sort((l,h)=>l.at-h.at||l.line-h.line);let s=e.activeCellIndex,r=a.find(l=>l.at>s||l.at===s&&l.line>n),i=r??a[0];if(!i)return;e.activeCellIndex=i.at,e.mode="edit",await i.cell.ready;let{editor:g}=i.cell,{to:f}=g.editor.state.doc.line(i.line);g.focus(),g.editor.dispatch({selection:{anchor:f},scrollIntoView:!0,effects:this.marks.effects.open.of(i.found)})}release(){let e=this.here();e?.view.dispatch({effects:this.marks.effects.release.of(e.placed.found)})}},G=o=>o.trim().split(`
`).map(e=>e.trim()).join(`
`);function ue(o){let e=o?.editor?.editor.state;return e?e.doc.lineAt(e.selection.main.head).number:0}function q(o){let{apputils:e,codemirror:t,notebook:n,translation:a}=o;return{id:"nbautograd:plugin",autoStart:!0,requires:[n.INotebookTracker,t.IEditorExtensionRegistry],optional:[e.ICommandPalette,a.ITranslator],activate(s,r,i,g,f){document.head.append(Object.assign(document.createElement("style"),{textContent:K}));let l=new R(s,o,r),{EditorExtensionRegistry:h}=t;i.addExtension({name:"nbautograd:marks",factory:c=>h.createImmutableExtension(l.editor(c))}),r.forEach(c=>void l.follow(c)),r.widgetAdded.connect((c,u)=>void l.follow(u));let x=f?.languageCode?.startsWith("zh")?"zh":"en",d=new M(s,r,o,x);d.addWriting(),d.add("command.next","next-finding",()=>l.next()),d.add("command.apply","apply",()=>l.apply(!1)),d.add("command.apply_and_run","apply-and-run",()=>l.apply(!0)),d.add("command.release","release",()=>l.release());for(let c of d.ids)g?.addItem({command:c,category:"nbautograd"});document.addEventListener("nbautograd:apply",c=>l.fromReport(c)),document.documentElement.dataset.nbautogradLab="1"}}}var U={};async function ge(o){let e=Object.values(U[o]??{}),t=e.find(n=>n.loaded)??e[0];if(!t)throw new Error(`nbautograd: this application has no ${o}`);return(await t.get())()}var fe={init(o){U=o},async get(){let[o,e,t,n,a,s]=await Promise.all(["@jupyterlab/apputils","@jupyterlab/codemirror","@jupyterlab/notebook","@jupyterlab/translation","@codemirror/view","@codemirror/state"].map(ge)),r=[q({apputils:o,codemirror:e,notebook:t,translation:n,view:a,state:s})];return()=>({__esModule:!0,default:r})}},F=window;F._JUPYTERLAB={...F._JUPYTERLAB,nbautograd:fe};})();
