"use strict";(()=>{function v(a,e){let t=e.text.split(`
`),n=r=>t.every((i,s)=>a[r+s]===i);if(n(e.first_line-1))return e.first_line;let o=a.flatMap((r,i)=>n(i)?[i+1]:[]);return o.length===1?o[0]:0}function T(a,e){if(e.cell)return a.find(n=>n.id===e.cell);let t=a.filter(n=>v(n.getSource().split(`
`),e));return t.length===1?t[0]:void 0}var R={en:{always:"Always (this session)",apply:"Apply",refused_changed:"The code has changed since it was checked. Run the cell again.","command.apply":"Autograd: apply the suggested change on this line","command.apply_and_run":"Autograd: apply the suggested change on this line and run","command.audit":"Autograd: audit this cell","command.check":"Autograd: check the Function of this cell","command.explain":"Autograd: explain the last error","command.freeze":"Autograd: freeze this notebook as a page","command.graph":"Autograd: show the graph of the selected variable","command.next":"Autograd: go to the next finding","command.release":"Autograd: hide the change of this line",find:"Find the line",finding:"The cells run once more, in a copy of the process",ghost:"change that was tried",refused_gone:"The checked code is not in a cell of this notebook.",lines:"your lines of this error",no_kernel:"No kernel is connected.",open:"Show",stop:"Stop",traceback:"traceback, with {count} torch frames",refused_untrusted:"This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output.",line:"line {line}",apply_and_run:"Apply and run",more:"More"},zh:{always:"总是（本次会话）",apply:"应用",refused_changed:"代码在检查之后改过。请重新运行这个单元格。","command.apply":"Autograd：应用这一行的修改","command.apply_and_run":"Autograd：应用这一行的修改并运行","command.audit":"Autograd：审查这个单元格","command.check":"Autograd：检查这个单元格的 Function","command.explain":"Autograd：解释最近一次错误","command.freeze":"Autograd：把这个笔记本冻结成网页","command.graph":"Autograd：显示所选变量的计算图","command.next":"Autograd：转到下一处发现","command.release":"Autograd：隐藏这一行的修改",find:"找出这一行",finding:"正在进程的副本里重新运行这些单元格",ghost:"试过的修改",refused_gone:"检查过的代码不在这个笔记本的单元格里。",lines:"你的代码里与这个错误有关的行",no_kernel:"没有连接到内核。",open:"查看",stop:"停止",traceback:"回溯信息，其中有 {count} 个 torch 栈帧",refused_untrusted:"这个笔记本未受信任，不能应用修改。重新运行单元格即可信任它的输出。",line:"第 {line} 行",apply_and_run:"应用并运行",more:"更多"}};var w=a=>(e,t)=>(a==="zh"?R.zh:R.en)[e].replace(/\{(\w+)\}/g,(n,o)=>String(t?.[o]??n));function M({mark:a,checked:e,language:t,from:n,notebook:o},r,{NotebookActions:i}){let s=w(t),l=a.change,u=o.home(e);if(!l)return s("refused_gone");if(!n.trusted)return s("refused_untrusted");if(!u)return s("refused_gone");let g=u.sharedModel.getSource(),h=g.split(`
`),x=v(h,e);if(!x)return s("refused_changed");let c=l.line+x-e.first_line-1,d=h.slice(0,c).join(`
`).length+(c?1:0);if(u.sharedModel.transact(()=>u.sharedModel.updateSource(d,d+l.before.length,l.after)),!r)return"";let{panel:p}=o,m=p.content.widgets.filter(({model:b})=>b===u||b===n);return p.content.activate(),i.runCells(p.content,m,p.sessionContext),""}var oe=/^\s*%(re)?load_ext\s+nbautograd\b/m,ae=/[\p{L}_][\p{L}\p{N}_.]*/gu;function re(a){let e=a?.editor?.editor.state;if(!e)return"";let{from:t,to:n,head:o}=e.selection.main,r=e.doc.toString();return t<n?r.slice(t,n).trim():[...r.matchAll(ae)].find(({0:i,index:s})=>s<=o&&o<=s+i.length)?.[0]??""}var se={check:()=>({above:"%%autograd_function --inputs "}),audit:()=>({above:"%%autograd_audit",runs:!0}),explain:()=>({line:"%autograd_explain --run"}),graph({content:a}){let e=re(a.activeCell);return e?{line:`%autograd_graph ${e}`}:null},freeze:({context:a})=>({line:`!nbautograd freeze "${a.path.split("/").pop()}"`,saves:!0})},j=class{constructor(e,t,n,o){this.app=e,this.tracker=t,this.actions=n.notebook.NotebookActions,this.say=w(o),this.ids=[]}add(e,t,n){let o=`nbautograd:${t}`;this.ids.push(o),this.app.commands.addCommand(o,{label:this.say(e),execute:n,isEnabled:()=>!!this.tracker.currentWidget})}addWriting(){for(let[e,t]of Object.entries(se)){let n=`command.${e}`;this.add(n,e,()=>{let o=this.tracker.currentWidget,r=o&&t(o);if(r)return this.write(o,r)})}}async write(e,{line:t,above:n,runs:o,saves:r}){let{content:i}=e,s=i.activeCell;if(r&&await e.context.save(),t){let x=i.widgets.some(({model:d})=>oe.test(d.sharedModel.getSource()));this.actions.insertBelow(i);let c=i.activeCell;return c.model.sharedModel.setSource(x?t:`%load_ext nbautograd
${t}`),this.actions.runCells(i,[c],e.sessionContext)}if(!n||s?.model.type!=="code"||!s.editor)return;let{sharedModel:l}=s.model,u=l.getSource(),g=n.split(" ")[0];if(u.startsWith(g)||l.transact(()=>l.updateSource(0,0,`${n}
`)),o)return this.actions.runCells(i,[s],e.sessionContext);i.mode="edit",s.editor.focus();let{doc:h}=s.editor.editor.state;s.editor.editor.dispatch({selection:{anchor:h.line(1).to}})}};var ie=/[\u202a-\u202e\u2066-\u2069]/g,le=/((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)/,de=/\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) \/ d (?=\S)/g,ce=/(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))/g;function N(a,e,t=[]){for(let[n,o]of Object.entries(typeof e=="string"?{class:e}:e??{}))if(!(o==null||o===!1))if(n==="on")for(let[r,i]of Object.entries(o))a.addEventListener(r,i);else a.setAttribute(n,o===!0?"":String(o));return a.append(...t.filter(n=>n!=null&&n!==!1).flatMap(n=>n instanceof Node?n:ue(a,String(n).replace(ie,"�")))),a}function ue(a,e){return!(a instanceof HTMLElement)||a.matches("option,pre,style")?[e]:e.replace(de,"d $1 / d ").replace(ce," ").split(le).map((t,n)=>n%2?Object.assign(document.createElement("span"),{className:"whole",textContent:t}):t)}var f=(a,e,...t)=>N(document.createElement(a),e,t);var _=(a,e,t="button")=>f("button",{class:t,on:{click:e}},a);function k(a){let e=a.split(/`([^`\n]+)`/);return N(document.createDocumentFragment().appendChild(f("span")),null,e.map((t,n)=>n%2?f("code",null,t):t))}var I={bug:"✗",risk:"!",explained:"◆"},$=(a,e)=>f("pre",{class:"nbag-change",tabindex:"0"},f("code",null,...D(a,e)));function D({after:a,lit:e},t=0){return a.split(`
`).map((o,r)=>{let i=[],s=t;for(let[,l,u]of e.filter(([g])=>g===r))i.push(o.slice(s,l),f("mark","nbag-lit",o.slice(l,u))),s=u;return f("span","nbag-row",...i,o.slice(s))})}function B({found:a,line:e},t,n){let{mark:o,language:r,from:i}=a,s=w(r),l=o.change,u=l?l.after.match(/^ *(?=\S)/gm)??[]:[],g=Math.min(...u.map(d=>d.length)),h=f("p",{class:"nbag-said",role:"status"}),x=d=>()=>void(h.textContent=t(d)),c=_(s("apply"),x(!1),"nbag-button");return n&&c.append(f("kbd",{class:"nbag-key","aria-hidden":"true"},"Tab")),l&&!i.trusted&&(h.textContent=s("refused_untrusted")),f("section",{class:`nbag-card nbag-${o.tone}`,"aria-label":`${o.kind}, ${s("line",{line:e})}`},f("p",null,f("strong","nbag-kind",`${I[o.tone]} ${o.kind}`)," ",k(o.message)),l&&$(l,g),l&&f("p","nbag-note",k(l.note)),l&&i.trusted&&f("div","nbag-buttons",_(s("apply_and_run"),x(!0),"nbag-button nbag-first"),c),h)}var P=({found:a,exact:e})=>e&&a.from.trusted&&!!a.mark.change;function H(a,e){let t=e.length?a.toString().split(`
`):[];return e.flatMap(n=>{let o=v(t,n.checked);if(!o)return[];let r=o-n.checked.first_line,i=n.mark.line+r,s=n.mark.change,l=s?s.line+r:0,u=s?l+s.before.split(`
`).length-1:i,g=a.line(Math.min(i,l||i)).from,h=a.line(Math.max(i,u)).to;return[{found:n,line:i,from:g,to:h,change:l,exact:!0}]})}function ge({given:a,placed:e},t){let n=H(t.newDoc,a),o=e.flatMap(r=>{if(n.some(({found:g})=>g===r.found))return[];if(t.changes.touchesRange(r.from,r.to))return[];let i=t.startState.doc.line(r.line).from,s=t.newDoc.lineAt(t.changes.mapPos(i,1)).number,[l,u]=[r.from,r.to].map(g=>t.changes.mapPos(g,1));return[{...r,line:s,from:l,to:u,change:0,exact:!1}]});return[...n,...o]}function K({view:a,state:e},t){let n={set:e.StateEffect.define(),release:e.StateEffect.define(),open:e.StateEffect.define()},o=new e.Compartment;class r extends a.WidgetType{constructor(d){super(),this.placed=d}eq(d){return d.placed.found===this.placed.found}toDOM(){return pe(this.placed,t)}}class i extends a.GutterMarker{constructor(d){super(),this.mark=d}eq(d){return d.mark===this.mark}toDOM(){return f("span",`nbag-sign nbag-${this.mark.tone}`,I[this.mark.tone])}}function s({placed:c,released:d},p){let m=c.flatMap(b=>{let{mark:y}=b.found,{from:E,to:ee}=p.line(b.line),[te,ne]=y.columns,z=[a.Decoration.mark({class:`nbag-under nbag-${y.tone}`}).range(E+te,Math.min(ee,E+ne))];if(P(b)&&!d.includes(b.found)){let A=a.Decoration.widget({widget:new r(b),block:!0,side:1});z.push(A.range(p.line(b.change+G(b)-1).to))}return z.filter(A=>A.from<A.to||A.value.spec.block)});return a.Decoration.set(m,!0)}let l=(c,d)=>({pos:d,above:!1,create:p=>({dom:f("div",null,B(c,m=>t(c,m),S(p,u)===c))})}),u=e.StateField.define({create:()=>({given:[],placed:[],released:[],opened:null}),update(c,d){let p=c;d.docChanged?p={...p,placed:ge(p,d),opened:null}:d.selection&&(p={...p,opened:null});for(let m of d.effects){let{value:b}=m,y=p.released.filter(E=>E!==b);m.is(n.set)&&(p={given:b,placed:H(d.newDoc,b),released:[],opened:null}),m.is(n.release)&&(p={...p,released:[...y,b],opened:null}),m.is(n.open)&&(p={...p,released:y,opened:b})}return p},provide:c=>[a.EditorView.decorations.compute([c],d=>s(d.field(c),d.doc)),a.showTooltip.compute([c],d=>{let{placed:p,opened:m}=d.field(c),b=p.find(({found:y})=>y===m);return b?l(b,d.doc.line(b.line).from):null})]}),g=a.gutter({class:"nbag-gutter",markers(c){let{placed:d}=c.state.field(u),p=d.map(m=>new i(m.found.mark).range(c.state.doc.line(m.line).from));return e.RangeSet.of(p,!0)},domEventHandlers:{mousedown(c,d){let{placed:p}=c.state.field(u),m=p.find(({line:b})=>c.state.doc.line(b).from===d.from);return m&&c.dispatch({effects:n.open.of(m.found)}),!!m}}}),h=a.hoverTooltip((c,d)=>{let{placed:p}=c.state.field(u),m=c.state.doc.lineAt(d).number,b=p.find(y=>y.line===m);return b?l(b,c.state.doc.line(m).from):null}),x=a.EditorView.updateListener.of(c=>{let d=S(c.view,u);c.view.dom.parentElement?.classList.toggle("nbag-at-mark",!!d)});return{field:u,effects:n,extension:[u,h,x,o.of([])],show(c,d){let p=o.reconfigure(d.length?g:[]);c.dispatch({effects:[n.set.of(d),p]})}}}var G=({found:a})=>a.mark.change?.before.split(`
`).length??0;function S(a,e){let{doc:t,selection:n}=a.state,{placed:o,released:r}=a.state.field(e),i=t.lineAt(n.main.head).number;return o.find(s=>P(s)&&!r.includes(s.found)&&(s.line===i||i>=s.change&&i<s.change+G(s)))}function pe(a,e){let{mark:t,language:n}=a.found,o=t.change,r=w(n),i=f("div",{class:"nbag-ghost",role:"note","aria-label":r("ghost")},f("code",null,...D(o)),f("span","nbag-note",k(o.note)),f("kbd","nbag-key","Tab"));return i.addEventListener("mousedown",s=>{s.preventDefault(),e(a,!1)}),i}async function q(a,e,t){let n=null,o="";for(let r of e){n=null;let i={code:r,store_history:!1,stop_on_error:!1},s=a.requestExecute(i,!0,{cellId:t});s.onIOPub=({header:l,content:u})=>{["display_data","update_display_data","execute_result"].includes(l.msg_type)&&(n=u.data["text/plain"]?u.data:n),l.msg_type==="stream"&&u.name==="stderr"&&(o+=u.text),l.msg_type==="error"&&(o=`${u.ename}: ${u.evalue}`)},await s.done.catch(l=>o=l.message)}return o?{data:null,words:o.trim()}:{data:n,words:""}}var C="application/vnd.nbautograd.explanation+json",fe="%autograd_explain --on --run",he=/^.*File .*[\\/]torch[\\/].*$/gm,F=110;function J({Widget:a},e,t){return class extends a{constructor(n){super(),this.options=n,this.folded=null}async renderModel(n){let o=e.createRenderer("text/html",this.options);await o.renderModel(n),this.model=n,this.rest?.dispose(),this.rest=o,this.draw()}onAfterAttach(){this.draw()}onBeforeDetach(){this.folded?.classList.remove("nbag-folded")}dispose(){this.rest?.dispose(),super.dispose()}draw(){if(!this.model||!this.node.isConnected)return;let{data:n,trusted:o}=this.model,r=n[C],i=w(r.language),s=me(this.node,t());this.folded?.classList.remove("nbag-folded"),this.folded=be(this.node,s);let l=f("p",{class:"nbag-said",role:"status"});this.node.replaceChildren(f("section",{class:"nbag-wall","aria-label":r.answer},this.folded&&xe(this.folded,s,i),f("p","nbag-answer",k(r.answer)),r.rows.length>0&&we(r,i),r.change&&$(r.change),r.change&&f("p","nbag-note",k(r.change.note)),o&&s&&ye(this.node,r,s,l),l,f("details",null,f("summary",null,i("more")),this.rest.node)))}}}function me(a,e){let t=e.find(s=>s.node.contains(a)),n=t?.content.widgets.find(s=>s.node.contains(a))?.model,o=a.closest(".jp-OutputArea-child"),r=o?[...o.parentElement?.children??[]].indexOf(o):-1,i=n?.outputs;return!t||!n||!i||r<0||r>=i.length?null:C in i.get(r).data?{panel:t,cell:n,at:r}:null}function be(a,e){let t=a.closest(".jp-OutputArea-child")?.previousElementSibling;return!e?.at||!(t instanceof HTMLElement)?null:e.cell.outputs?.get(e.at-1).type==="error"?t:null}function xe(a,e,t){let n=e?.at?e.cell.outputs?.get(e.at-1).toJSON():void 0,o=String(n?.evalue??"").split(/: \[|\. |\n/)[0],r=(n?.traceback??[]).join(`
`).replace(/\x1b\[[\d;]*m/g,"").match(he)??[];a.classList.add("nbag-folded");let i=_("",s,"nbag-fold");i.append(f("strong",null,n?.ename??""),` ${o.length>F?`${o.slice(0,F)}…`:o} `,f("span","nbag-note",t("traceback",{count:r.length}))),i.setAttribute("aria-expanded","false");function s(){let l=a.classList.toggle("nbag-folded");i.setAttribute("aria-expanded",String(!l))}return i}var we=({rows:a},e)=>f("ol",{class:"nbag-arc","aria-label":e("lines")},...a.map(({role:t,place:n,text:o,main:r})=>f("li",r?"nbag-main":null,f("span","nbag-role",t),f("code",null,o),f("span","nbag-note",k(n)))));function ye(a,e,t,n){let o=w(e.language),r=(u,g,h="")=>_(o(u),g,`nbag-button ${h}`),i=u=>()=>{let g={change:e.change,run:u,refused:""};a.dispatchEvent(new CustomEvent("nbautograd:apply",{bubbles:!0,composed:!0,detail:g})),n.textContent=g.refused},s=u=>async()=>{let{panel:g,cell:h,at:x}=t,c=g.sessionContext.session?.kernel;if(!c)return void(n.textContent=o("no_kernel"));for(let b of l.querySelectorAll("button"))b.disabled=!0;let d=r("stop",()=>void c.interrupt());n.replaceChildren(o("finding"),f("progress",{"aria-label":o("finding")}),d);let{data:p,words:m}=await q(c,u,h.sharedModel.id);if(g.content.activate(),p)return h.outputs?.set(x,{output_type:"display_data",data:p,metadata:{}});n.textContent=m;for(let b of l.querySelectorAll("button"))b.disabled=!1},l=f("div","nbag-buttons",e.change&&r("apply_and_run",i(!0),"nbag-first"),e.change&&r("apply",i(!1)),e.find&&r("find",s([e.find]),"nbag-first"),e.find.includes("@")&&r("always",s([fe,e.find])));return l}var L="application/vnd.nbautograd.marks+json",O=class{constructor(e,t,n){this.panel=e,this.show=t,this.ended=n,this.read=new Map,this.found=new Map,this.cells.changed.connect(()=>this.follow()),this.follow()}get cells(){return this.panel.content.model.cells}get all(){return Array.from({length:this.cells.length},(e,t)=>this.cells.get(t))}home(e){let t=T(this.all.map(n=>n.sharedModel),e);return this.all.find(n=>n.sharedModel===t)}follow(){let e=this.all.filter(t=>t.type==="code");for(let[t,{changed:n}]of this.read)e.includes(t)||(t.outputs?.changed.disconnect(n),t.stateChanged.disconnect(n),this.read.delete(t));for(let t of e)if(!this.read.has(t)){let n,o=()=>void Promise.resolve().then(()=>{this.reread(t),t.executionState==="running"?n??=performance.now():n!==void 0&&(this.ended(t,performance.now()-n),n=void 0)});this.read.set(t,{changed:o,outputs:U(t)}),t.outputs?.changed.connect(o),t.stateChanged.connect(o),t.contentChanged.connect(()=>this.again())}this.refresh()}reread(e){let t=this.read.get(e),n=U(e);!t||!n.length&&e.executionState==="running"||(t.outputs=n,this.refresh())}again(){[...this.read.values()].some(({outputs:t})=>t.some(n=>n.checked.some(o=>!o.cell)))&&this.refresh()}refresh(){let e=this.all.map(r=>r.sharedModel),t=new Map,n=new Set;for(let[r,{outputs:i}]of this.read)for(let{checked:s,marks:l,language:u}of i){let g=s.map(h=>T(e,h));for(let h of l){let x=g[h.checked],c=s[h.checked],d=JSON.stringify([x?.id,c.text,{...h,checked:0}]);if(!x||n.has(d))continue;n.add(d);let p=t.get(x.id)??[];t.set(x.id,[...p,{mark:h,checked:c,language:u,from:r,notebook:this}])}}let o=this.found;this.found=t;for(let r of new Set([...o.keys(),...t.keys()]))ke(o.get(r),t.get(r))||this.show(r,t.get(r)??[])}};function U({outputs:a}){return a?Array.from({length:a.length},(e,t)=>a.get(t).data[L]).filter(e=>e&&Array.isArray(e.marks)&&Array.isArray(e.checked)):[]}function ke(a=[],e=[]){return a.length===e.length&&a.every(({mark:t,checked:n,from:o},r)=>{let i=e[r];return t===i.mark&&n===i.checked&&o===i.from})}var Y=`.nbag-under {
  text-decoration-line: underline;
  text-decoration-thickness: 1.5px;
  text-underline-offset: 4px;
  text-decoration-skip-ink: none;
}
.nbag-under.nbag-bug {
  text-decoration-style: wavy;
  text-decoration-color: var(--nbag-bug);
}
.nbag-under.nbag-risk {
  text-decoration: none;
  border-bottom: 1.5px dashed var(--nbag-risk); /* dashes of a text decoration begin anew at each token */
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
  cursor: pointer;
}
.nbag-ghost,
.nbag-change {
  background: color-mix(in srgb, var(--nbag-new) 45%, var(--jp-layout-color1));
}
.nbag-ghost code {
  max-width: 100%;
  overflow-x: auto;
}
.nbag-ghost .nbag-note {
  white-space: normal;
}
/* a line is as wide as the longest one, which a narrow editor does not show */
@media (max-width: 900px) {
  .nbag-ghost code {
    flex-basis: 100%;
  }
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
.nbag-card .nbag-key {
  visibility: visible;
  margin-left: 6px;
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
.nbag-card p,
.nbag-wall p {
  margin: 0 0 6px;
}
.nbag-card p:empty,
.nbag-wall p:empty {
  display: none;
}
.nbag-card code,
.nbag-wall code {
  color: var(--jp-content-font-color1);
  background: none;
  font-family: var(--jp-code-font-family);
}
.nbag-change {
  overflow-x: auto;
  margin: 0 0 6px;
  padding: 4px 6px;
  font: var(--jp-code-font-size) / 1.4 var(--jp-code-font-family);
}
.nbag-folded {
  display: none !important;
}
.nbag-wall {
  margin: 2px 0 6px;
  padding: 6px 12px;
  border-left: 6px double var(--nbag-explained);
  color: var(--jp-ui-font-color1);
  font: var(--jp-ui-font-size1) / 1.5 var(--jp-ui-font-family);
}
.nbag-answer {
  font-weight: bold;
}
.nbag-fold {
  margin: 0 0 6px;
  padding: 0;
  border: 0;
  color: inherit;
  background: none;
  font: inherit;
  text-align: left;
  cursor: pointer;
}
.nbag-fold::before {
  content: "▸ ";
}
.nbag-fold[aria-expanded="true"]::before {
  content: "▾ ";
}
.nbag-fold strong {
  color: var(--nbag-bug);
}
.nbag-arc {
  margin: 0 0 8px;
  padding: 0;
  list-style: none;
}
.nbag-arc li {
  position: relative;
  display: grid;
  grid-template-columns: 11em minmax(0, max-content) 1fr;
  gap: 0 1em;
  align-items: baseline;
  padding: 2px 0 2px 22px;
}
.nbag-arc code {
  overflow-x: auto;
  white-space: pre;
}
.nbag-arc li::before {
  position: absolute;
  top: 0;
  bottom: 0;
  left: 6px;
  border-left: 2px solid var(--nbag-explained);
  content: "";
}
.nbag-arc li:first-child::before {
  top: 0.9em;
}
.nbag-arc li:last-child::before {
  bottom: calc(100% - 0.9em);
}
.nbag-arc li::after {
  position: absolute;
  top: 0.55em;
  left: 2px;
  width: 10px;
  height: 10px;
  border-radius: 50%;
  background: var(--nbag-explained);
  content: "";
}
.nbag-arc .nbag-main .nbag-role {
  color: var(--nbag-bug);
  font-weight: bold;
}
.nbag-arc .nbag-main::after {
  border-radius: 0;
  background: var(--nbag-bug);
  transform: rotate(45deg);
}
.nbag-said progress {
  margin: 0 1em;
  vertical-align: middle;
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
  border-color: transparent;
  color: var(--jp-layout-color1);
  background: var(--jp-brand-color1);
}
.nbag-button:disabled {
  opacity: 0.5;
}
.nbag-button:focus-visible,
.nbag-fold:focus-visible {
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
`;var _e=1e4,W=class{constructor(e,t,n,o){this.app=e,this.modules=t,this.tracker=n,this.Explanation=J(t.widgets,o,()=>n.filter(()=>!0)),this.views=new Map,this.found=new Map,this.marks=K(t,(r,i)=>M(r.found,i,t.notebook))}editor({model:e}){let t=e.sharedModel;if(t?.cell_type!=="code")return[];let n=this.modules.view.ViewPlugin.define(o=>{let r=this.views.get(t.id)??new Set;this.views.set(t.id,r.add(o));let i=this.found.get(t.id);return i&&queueMicrotask(()=>this.marks.show(o,i)),{destroy:()=>r.delete(o)}});return[this.marks.extension,n]}async follow(e){let t=n=>new this.Explanation(n);e.content.rendermime.addFactory({safe:!0,mimeTypes:[C],createRenderer:t},0),await e.context.ready,new O(e,(n,o)=>{this.found.set(n,o);for(let r of this.views.get(n)??[])this.marks.show(r,o)},(n,o)=>this.tell(e,n,o))}tell({id:e,content:t},n,o){if(o<_e||this.app.shell.currentWidget?.id===e&&!document.hidden)return;let{outputs:r}=n,i=Array.from({length:r?.length??0},(g,h)=>r?.get(h).data??{}),s=i.find(g=>L in g);if(!s)return;let l=w(s[L].language)("open"),u=()=>{this.app.shell.activateById(e),t.widgets.find(({model:g})=>g===n)?.node.scrollIntoView({block:"center"})};this.modules.apputils.Notification.info(String(s["text/plain"]).split(`
`)[0].replaceAll("`",""),{autoClose:!1,actions:[{label:l,callback:u}]})}here(){let e=this.tracker.currentWidget?.content.activeCell,t=e?.editor?.editor,n=t&&S(t,this.marks.field);return n?{view:t,placed:n}:null}apply(e){let t=this.here();t&&M(t.placed.found,e,this.modules.notebook)}fromReport(e){let{change:t,run:n}=e.detail,o=e.composedPath().find(s=>s instanceof HTMLElement&&s.classList.contains("jp-Cell")),r=[...this.found.values()].flat(),i=r.find(({mark:s,from:l,notebook:u})=>u.panel.content.widgets.find(({node:g})=>g===o)?.model===l&&s.change?.line===t.line&&Z(s.change?.after??"")===Z(t.after));e.detail.refused=i?M(i,n,this.modules.notebook):w(document.documentElement.lang)("refused_gone")}async next(){let e=this.tracker.currentWidget?.content;if(!e)return;let t=e.mode==="edit",n=t?Ae(e.activeCell):0,o=e.widgets.flatMap((g,h)=>(this.found.get(g.model.sharedModel.id)??[]).flatMap(x=>{let c=v(g.model.sharedModel.getSource().split(`
`),x.checked),d=x.mark.line+c-x.checked.first_line;return c?[{at:h,cell:g,found:x,line:d}]:[]}));o.sort((g,h)=>g.at-h.at||g.line-h.line);let r=e.activeCellIndex,i=o.find(g=>g.at>r||g.at===r&&g.line>n),s=i??o[0];if(!s)return;e.activeCellIndex=s.at,e.mode="edit",await s.cell.ready;let{editor:l}=s.cell,{to:u}=l.editor.state.doc.line(s.line);l.focus(),l.editor.dispatch({selection:{anchor:u},scrollIntoView:!0,effects:this.marks.effects.open.of(s.found)})}release(){let e=this.here();e?.view.dispatch({effects:this.marks.effects.release.of(e.placed.found)})}},Z=a=>a.trim().split(`
`).map(e=>e.trim()).join(`
`);function Ae(a){let e=a?.editor?.editor.state;return e?e.doc.lineAt(e.selection.main.head).number:0}function Q(a){let{apputils:e,codemirror:t,notebook:n,rendermime:o,translation:r}=a;return{id:"nbautograd:plugin",autoStart:!0,requires:[n.INotebookTracker,t.IEditorExtensionRegistry,o.IRenderMimeRegistry],optional:[e.ICommandPalette,r.ITranslator],activate(i,s,l,u,g,h){document.head.append(Object.assign(document.createElement("style"),{textContent:Y}));let x=new W(i,a,s,u),{EditorExtensionRegistry:c}=t;l.addExtension({name:"nbautograd:marks",factory:m=>c.createImmutableExtension(x.editor(m))}),s.forEach(m=>void x.follow(m)),s.widgetAdded.connect((m,b)=>void x.follow(b));let d=h?.languageCode?.startsWith("zh")?"zh":"en",p=new j(i,s,a,d);p.addWriting(),p.add("command.next","next-finding",()=>x.next()),p.add("command.apply","apply",()=>x.apply(!1)),p.add("command.apply_and_run","apply-and-run",()=>x.apply(!0)),p.add("command.release","release",()=>x.release());for(let m of p.ids)g?.addItem({command:m,category:"nbautograd"});document.addEventListener("nbautograd:apply",m=>x.fromReport(m)),document.documentElement.dataset.nbautogradLab="1"}}}var V={};async function Ee(a){let e=Object.values(V[a]??{}),t=e.find(n=>n.loaded)??e[0];if(!t)throw new Error(`nbautograd: this application has no ${a}`);return(await t.get())()}var Me={init(a){V=a},async get(){let[a,e,t,n,o,r,i,s]=await Promise.all(["@jupyterlab/apputils","@jupyterlab/codemirror","@jupyterlab/notebook","@jupyterlab/rendermime","@jupyterlab/translation","@lumino/widgets","@codemirror/view","@codemirror/state"].map(Ee)),l={apputils:a,codemirror:e,notebook:t,rendermime:n,translation:o,widgets:r,view:i,state:s};return()=>({__esModule:!0,default:[Q(l)]})}},X=window;X._JUPYTERLAB={...X._JUPYTERLAB,nbautograd:Me};})();
