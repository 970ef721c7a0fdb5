"use strict";(()=>{function v(a,e){let n=e.text.split(`
`),t=r=>n.every((i,s)=>a[r+s]===i);if(t(e.first_line-1))return e.first_line;let o=a.flatMap((r,i)=>t(i)?[i+1]:[]);return o.length===1?o[0]:0}function T(a,e){if(e.cell)return a.find(t=>t.id===e.cell);let n=a.filter(t=>v(t.getSource().split(`
`),e));return n.length===1?n[0]:void 0}var R={en:{always:"Always, in this session",apply:"Apply",refused_changed:"The code has changed since it was checked. Run the cell again.","command.apply":"Autograd: apply the suggested change on this line","command.apply_and_run":"Autograd: apply the suggested change on this line and run","command.audit":"Autograd: audit this cell","command.check":"Autograd: check the Function of this cell","command.explain":"Autograd: explain the last error","command.freeze":"Autograd: freeze this notebook as a page","command.graph":"Autograd: show the graph of the selected variable","command.next":"Autograd: go to the next finding","command.release":"Autograd: hide the change of this line",find:"Find the line",finding:"The cells run once more, in a copy of the process",ghost:"change that was tried",refused_gone:"The checked code is not in a cell of this notebook.",lines:"your lines of this error",no_kernel:"No kernel is connected.",open:"Show",stop:"Stop",traceback:"traceback, with {count} torch frames",refused_untrusted:"This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output.",line:"line {line}",apply_and_run:"Apply and run",more:"More"},zh:{always:"本次会话里总是如此",apply:"应用",refused_changed:"代码在检查之后改过。请重新运行这个单元格。","command.apply":"Autograd：应用这一行的修改","command.apply_and_run":"Autograd：应用这一行的修改并运行","command.audit":"Autograd：审查这个单元格","command.check":"Autograd：检查这个单元格的 Function","command.explain":"Autograd：解释最近一次错误","command.freeze":"Autograd：把这个笔记本冻结成网页","command.graph":"Autograd：显示所选变量的计算图","command.next":"Autograd：转到下一处发现","command.release":"Autograd：隐藏这一行的修改",find:"找出这一行",finding:"正在进程的副本里重新运行这些单元格",ghost:"试过的修改",refused_gone:"检查过的代码不在这个笔记本的单元格里。",lines:"你的代码里与这个错误有关的行",no_kernel:"没有连接到内核。",open:"查看",stop:"停止",traceback:"回溯信息，其中有 {count} 个 torch 栈帧",refused_untrusted:"这个笔记本未受信任，不能应用修改。重新运行单元格即可信任它的输出。",line:"第 {line} 行",apply_and_run:"应用并运行",more:"更多"}};var w=a=>(e,n)=>(a==="zh"?R.zh:R.en)[e].replace(/\{(\w+)\}/g,(t,o)=>String(n?.[o]??t));function M({mark:a,checked:e,language:n,from:t,notebook:o},r,{NotebookActions:i}){let s=w(n),l=a.change,d=o.home(e);if(!l)return s("refused_gone");if(!t.trusted)return s("refused_untrusted");if(!d)return s("refused_gone");let g=d.sharedModel.getSource(),m=g.split(`
`),b=v(m,e);if(!b)return s("refused_changed");let c=l.line+b-e.first_line-1,u=m.slice(0,c).join(`
`).length+(c?1:0);if(d.sharedModel.transact(()=>d.sharedModel.updateSource(u,u+l.before.length,l.after)),!r)return"";let{panel:f}=o,h=f.content.widgets.filter(({model:x})=>x===d||x===t);return f.content.activate(),i.runCells(f.content,h,f.sessionContext),""}var ne=/^\s*%(re)?load_ext\s+nbautograd\b/m,oe=/[\p{L}_][\p{L}\p{N}_.]*/gu;function ae(a){let e=a?.editor?.editor.state;if(!e)return"";let{from:n,to:t,head:o}=e.selection.main,r=e.doc.toString();return n<t?r.slice(n,t).trim():[...r.matchAll(oe)].find(({0:i,index:s})=>s<=o&&o<=s+i.length)?.[0]??""}var re={check:()=>({above:"%%autograd_function --inputs "}),audit:()=>({above:"%%autograd_audit",runs:!0}),explain:()=>({line:"%autograd_explain --run"}),graph({content:a}){let e=ae(a.activeCell);return e?{line:`%autograd_graph ${e}`}:null},freeze:({context:a})=>({line:`!nbautograd freeze "${a.path.split("/").pop()}"`,saves:!0})},j=class{constructor(e,n,t,o){this.app=e,this.tracker=n,this.actions=t.notebook.NotebookActions,this.say=w(o),this.ids=[]}add(e,n,t){let o=`nbautograd:${n}`;this.ids.push(o),this.app.commands.addCommand(o,{label:this.say(e),execute:t,isEnabled:()=>!!this.tracker.currentWidget})}addWriting(){for(let[e,n]of Object.entries(re)){let t=`command.${e}`;this.add(t,e,()=>{let o=this.tracker.currentWidget,r=o&&n(o);if(r)return this.write(o,r)})}}async write(e,{line:n,above:t,runs:o,saves:r}){let{content:i}=e,s=i.activeCell;if(r&&await e.context.save(),n){let b=i.widgets.some(({model:u})=>ne.test(u.sharedModel.getSource()));this.actions.insertBelow(i);let c=i.activeCell;return c.model.sharedModel.setSource(b?n:`%load_ext nbautograd
${n}`),this.actions.runCells(i,[c],e.sessionContext)}if(!t||s?.model.type!=="code"||!s.editor)return;let{sharedModel:l}=s.model,d=l.getSource(),g=t.split(" ")[0];if(d.startsWith(g)||l.transact(()=>l.updateSource(0,0,`${t}
`)),o)return this.actions.runCells(i,[s],e.sessionContext);i.mode="edit",s.editor.focus();let{doc:m}=s.editor.editor.state;s.editor.editor.dispatch({selection:{anchor:m.line(1).to}})}};var se=/[\u202a-\u202e\u2066-\u2069]/g,ie=/((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)/,le=/\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) \/ d (?=\S)/g,de=/(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))/g;function z(a,e,n=[]){for(let[t,o]of Object.entries(typeof e=="string"?{class:e}:e??{}))if(!(o==null||o===!1))if(t==="on")for(let[r,i]of Object.entries(o))a.addEventListener(r,i);else a.setAttribute(t,o===!0?"":String(o));return a.append(...n.filter(t=>t!=null&&t!==!1).flatMap(t=>t instanceof Node?t:ce(a,String(t).replace(se,"�")))),a}function ce(a,e){return!(a instanceof HTMLElement)||a.matches("option,pre,style")?[e]:e.replace(le,"d $1 / d ").replace(de," ").split(ie).map((n,t)=>t%2?Object.assign(document.createElement("span"),{className:"whole",textContent:n}):n)}var p=(a,e,...n)=>z(document.createElement(a),e,n);var _=(a,e,n="button")=>p("button",{class:n,on:{click:e}},a);function k(a){let e=a.split(/`([^`\n]+)`/);return z(document.createDocumentFragment().appendChild(p("span")),null,e.map((n,t)=>t%2?p("code",null,n):n))}var I={bug:"✗",risk:"!",explained:"◆"};function E({after:a,lit:e}){return a.split(`
`).map((t,o)=>{let r=[],i=0;for(let[,s,l]of e.filter(([d])=>d===o))r.push(t.slice(i,s),p("mark","nbag-lit",t.slice(s,l))),i=l;return p("span","nbag-row",...r,t.slice(i))})}function N({found:a,line:e},n,t){let{mark:o,language:r,from:i}=a,s=w(r),l=o.change,d=p("p",{class:"nbag-said",role:"status"}),g=b=>()=>void(d.textContent=n(b)),m=_(s("apply"),g(!1),"nbag-button");return t&&m.append(p("kbd",{class:"nbag-key","aria-hidden":"true"},"Tab")),l&&!i.trusted&&(d.textContent=s("refused_untrusted")),p("section",{class:`nbag-card nbag-${o.tone}`,"aria-label":`${o.kind}, ${s("line",{line:e})}`},p("p",null,p("strong","nbag-kind",`${I[o.tone]} ${o.kind}`)," ",k(o.message)),l&&p("pre",{class:"nbag-change",tabindex:"0"},p("code",null,...E(l))),l&&p("p","nbag-note",k(l.note)),l&&i.trusted&&p("div","nbag-buttons",_(s("apply_and_run"),g(!0),"nbag-button nbag-first"),m),d)}var P=({found:a,exact:e})=>e&&a.from.trusted&&!!a.mark.change;function B(a,e){let n=e.length?a.toString().split(`
`):[];return e.flatMap(t=>{let o=v(n,t.checked);if(!o)return[];let r=o-t.checked.first_line,i=t.mark.line+r,s=t.mark.change,l=s?s.line+r:0,d=s?l+s.before.split(`
`).length-1:i,g=a.line(Math.min(i,l||i)).from,m=a.line(Math.max(i,d)).to;return[{found:t,line:i,from:g,to:m,change:l,exact:!0}]})}function ue({given:a,placed:e},n){let t=B(n.newDoc,a),o=e.flatMap(r=>{if(t.some(({found:g})=>g===r.found))return[];if(n.changes.touchesRange(r.from,r.to))return[];let i=n.startState.doc.line(r.line).from,s=n.newDoc.lineAt(n.changes.mapPos(i,1)).number,[l,d]=[r.from,r.to].map(g=>n.changes.mapPos(g,1));return[{...r,line:s,from:l,to:d,change:0,exact:!1}]});return[...t,...o]}function H({view:a,state:e},n){let t={set:e.StateEffect.define(),release:e.StateEffect.define(),open:e.StateEffect.define()},o=new e.Compartment;class r extends a.WidgetType{constructor(u){super(),this.placed=u}eq(u){return u.placed.found===this.placed.found}toDOM(){return ge(this.placed,n)}}class i extends a.GutterMarker{constructor(u){super(),this.mark=u}eq(u){return u.mark===this.mark}toDOM(){return p("span",`nbag-sign nbag-${this.mark.tone}`,I[this.mark.tone])}}function s({placed:c,released:u},f){let h=c.flatMap(x=>{let{mark:y}=x.found,{from:D,to:V}=f.line(x.line),[ee,te]=y.columns,W=[a.Decoration.mark({class:`nbag-under nbag-${y.tone}`}).range(D+ee,Math.min(V,D+te))];if(P(x)&&!u.includes(x.found)){let A=a.Decoration.widget({widget:new r(x),block:!0,side:1});W.push(A.range(f.line(x.change+K(x)-1).to))}return W.filter(A=>A.from<A.to||A.value.spec.block)});return a.Decoration.set(h,!0)}let l=(c,u)=>({pos:u,above:!1,create:f=>({dom:p("div",null,N(c,h=>n(c,h),C(f,d)===c))})}),d=e.StateField.define({create:()=>({given:[],placed:[],released:[],opened:null}),update(c,u){let f=c;u.docChanged?f={...f,placed:ue(f,u),opened:null}:u.selection&&(f={...f,opened:null});for(let{value:h,is:x}of u.effects.map(y=>({value:y.value,is:y.is.bind(y)})))x(t.set)&&(f={given:h,placed:B(u.newDoc,h),released:[],opened:null}),x(t.release)&&(f={...f,released:[...f.released,h],opened:null}),x(t.open)&&(f={...f,opened:h});return f},provide:c=>[a.EditorView.decorations.compute([c],u=>s(u.field(c),u.doc)),a.showTooltip.compute([c],u=>{let{placed:f,opened:h}=u.field(c),x=f.find(({found:y})=>y===h);return x?l(x,u.doc.line(x.line).from):null})]}),g=a.gutter({class:"nbag-gutter",markers(c){let{placed:u}=c.state.field(d),f=u.map(h=>new i(h.found.mark).range(c.state.doc.line(h.line).from));return e.RangeSet.of(f,!0)},domEventHandlers:{mousedown(c,u){let{placed:f}=c.state.field(d),h=f.find(({line:x})=>c.state.doc.line(x).from===u.from);return h&&c.dispatch({effects:t.open.of(h.found)}),!!h}}}),m=a.hoverTooltip((c,u)=>{let{placed:f}=c.state.field(d),h=c.state.doc.lineAt(u).number,x=f.find(y=>y.line===h);return x?l(x,c.state.doc.line(h).from):null}),b=a.EditorView.updateListener.of(c=>{let u=C(c.view,d);c.view.dom.parentElement?.classList.toggle("nbag-at-mark",!!u)});return{field:d,effects:t,extension:[d,m,b,o.of([])],show(c,u){let f=o.reconfigure(u.length?g:[]);c.dispatch({effects:[t.set.of(u),f]})}}}var K=({found:a})=>a.mark.change?.before.split(`
`).length??0;function C(a,e){let{doc:n,selection:t}=a.state,{placed:o,released:r}=a.state.field(e),i=n.lineAt(t.main.head).number;return o.find(s=>P(s)&&!r.includes(s.found)&&(s.line===i||i>=s.change&&i<s.change+K(s)))}function ge(a,e){let{mark:n,language:t}=a.found,o=n.change,r=w(t),i=p("div",{class:"nbag-ghost",role:"note","aria-label":r("ghost")},p("code",null,...E(o)),p("span","nbag-note",k(o.note)),p("kbd","nbag-key","Tab"));return i.addEventListener("mousedown",s=>{s.preventDefault(),e(a,!1)}),i}async function G(a,e,n){let t=null,o="";for(let r of e){t=null;let i={code:r,store_history:!1,stop_on_error:!1},s=a.requestExecute(i,!0,{cellId:n});s.onIOPub=({header:l,content:d})=>{["display_data","update_display_data","execute_result"].includes(l.msg_type)&&(t=d.data["text/plain"]?d.data:t),l.msg_type==="stream"&&d.name==="stderr"&&(o+=d.text),l.msg_type==="error"&&(o=`${d.ename}: ${d.evalue}`)},await s.done.catch(l=>o=l.message)}return o?{data:null,words:o.trim()}:{data:t,words:""}}var S="application/vnd.nbautograd.explanation+json",fe="%autograd_explain --on --run",pe=/^.*File .*[\\/]torch[\\/].*$/gm,q=110;function F({Widget:a},e,n){return class extends a{constructor(t){super(),this.options=t,this.folded=null}async renderModel(t){let o=e.createRenderer("text/html",this.options);await o.renderModel(t),this.model=t,this.rest?.dispose(),this.rest=o,this.draw()}onAfterAttach(){this.draw()}onBeforeDetach(){this.folded?.classList.remove("nbag-folded")}dispose(){this.rest?.dispose(),super.dispose()}draw(){if(!this.model||!this.node.isConnected)return;let{data:t,trusted:o}=this.model,r=t[S],i=w(r.language),s=he(this.node,n());this.folded?.classList.remove("nbag-folded"),this.folded=me(this.node,s);let l=p("p",{class:"nbag-said",role:"status"});this.node.replaceChildren(p("section",{class:"nbag-wall","aria-label":r.answer},this.folded&&be(this.folded,s,i),p("p","nbag-answer",k(r.answer)),r.rows.length>0&&xe(r,i),r.change&&p("pre",{class:"nbag-change",tabindex:"0"},p("code",null,...E(r.change))),r.change&&p("p","nbag-note",k(r.change.note)),o&&s&&we(this.node,r,s,l),l,p("details",null,p("summary",null,i("more")),this.rest.node)))}}}function he(a,e){let n=e.find(s=>s.node.contains(a)),t=n?.content.widgets.find(s=>s.node.contains(a))?.model,o=a.closest(".jp-OutputArea-child"),r=o?[...o.parentElement?.children??[]].indexOf(o):-1,i=t?.outputs;return!n||!t||!i||r<0||r>=i.length?null:S in i.get(r).data?{panel:n,cell:t,at:r}:null}function me(a,e){let n=a.closest(".jp-OutputArea-child")?.previousElementSibling;return!e?.at||!(n instanceof HTMLElement)?null:e.cell.outputs?.get(e.at-1).type==="error"?n:null}function be(a,e,n){let t=e?.at?e.cell.outputs?.get(e.at-1).toJSON():void 0,o=String(t?.evalue??"").split(/: \[|\. |\n/)[0],r=(t?.traceback??[]).join(`
`).replace(/\x1b\[[\d;]*m/g,"").match(pe)??[];a.classList.add("nbag-folded");let i=_("",s,"nbag-fold");i.append(p("strong",null,t?.ename??""),` ${o.length>q?`${o.slice(0,q)}…`:o} `,p("span","nbag-note",n("traceback",{count:r.length}))),i.setAttribute("aria-expanded","false");function s(){let l=a.classList.toggle("nbag-folded");i.setAttribute("aria-expanded",String(!l))}return i}var xe=({rows:a},e)=>p("ol",{class:"nbag-arc","aria-label":e("lines")},...a.map(({role:n,place:t,text:o,main:r})=>p("li",r?"nbag-main":null,p("span","nbag-role",n),p("code",null,o),p("span","nbag-note",k(t)))));function we(a,e,n,t){let o=w(e.language),r=(d,g,m="")=>_(o(d),g,`nbag-button ${m}`),i=d=>()=>{let g={change:e.change,run:d,refused:""};a.dispatchEvent(new CustomEvent("nbautograd:apply",{bubbles:!0,composed:!0,detail:g})),t.textContent=g.refused},s=d=>async()=>{let{panel:g,cell:m,at:b}=n,c=g.sessionContext.session?.kernel;if(!c)return void(t.textContent=o("no_kernel"));for(let x of l.querySelectorAll("button"))x.disabled=!0;let u=r("stop",()=>void c.interrupt());t.replaceChildren(o("finding"),p("progress",{"aria-label":o("finding")}),u);let{data:f,words:h}=await G(c,d,m.sharedModel.id);if(g.content.activate(),f)return m.outputs?.set(b,{output_type:"display_data",data:f,metadata:{}});t.textContent=h;for(let x of l.querySelectorAll("button"))x.disabled=!1},l=p("div","nbag-buttons",e.change&&r("apply_and_run",i(!0),"nbag-first"),e.change&&r("apply",i(!1)),e.find&&r("find",s([e.find]),"nbag-first"),e.find.includes("@")&&r("always",s([fe,e.find])));return l}var L="application/vnd.nbautograd.marks+json",O=class{constructor(e,n,t){this.panel=e,this.show=n,this.ended=t,this.read=new Map,this.found=new Map,this.cells.changed.connect(()=>this.follow()),this.follow()}get cells(){return this.panel.content.model.cells}get all(){return Array.from({length:this.cells.length},(e,n)=>this.cells.get(n))}home(e){let n=T(this.all.map(t=>t.sharedModel),e);return this.all.find(t=>t.sharedModel===n)}follow(){let e=this.all.filter(n=>n.type==="code");for(let[n,{changed:t}]of this.read)e.includes(n)||(n.outputs?.changed.disconnect(t),n.stateChanged.disconnect(t),this.read.delete(n));for(let n of e)if(!this.read.has(n)){let t,o=()=>void Promise.resolve().then(()=>{this.reread(n),n.executionState==="running"?t??=performance.now():t!==void 0&&(this.ended(n,performance.now()-t),t=void 0)});this.read.set(n,{changed:o,outputs:J(n)}),n.outputs?.changed.connect(o),n.stateChanged.connect(o),n.contentChanged.connect(()=>this.again())}this.refresh()}reread(e){let n=this.read.get(e),t=J(e);!n||!t.length&&e.executionState==="running"||(n.outputs=t,this.refresh())}again(){[...this.read.values()].some(({outputs:n})=>n.some(t=>t.checked.some(o=>!o.cell)))&&this.refresh()}refresh(){let e=this.all.map(r=>r.sharedModel),n=new Map,t=new Set;for(let[r,{outputs:i}]of this.read)for(let{checked:s,marks:l,language:d}of i){let g=s.map(m=>T(e,m));for(let m of l){let b=g[m.checked],c=s[m.checked],u=JSON.stringify([b?.id,c.text,m]);if(!b||t.has(u))continue;t.add(u);let f=n.get(b.id)??[];n.set(b.id,[...f,{mark:m,checked:c,language:d,from:r,notebook:this}])}}let o=this.found;this.found=n;for(let r of new Set([...o.keys(),...n.keys()]))ye(o.get(r),n.get(r))||this.show(r,n.get(r)??[])}};function J({outputs:a}){return a?Array.from({length:a.length},(e,n)=>a.get(n).data[L]).filter(e=>e&&Array.isArray(e.marks)&&Array.isArray(e.checked)):[]}function ye(a=[],e=[]){return a.length===e.length&&a.every(({mark:n,checked:t,from:o},r)=>{let i=e[r];return n===i.mark&&t===i.checked&&o===i.from})}var U=`.nbag-under {
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
.nbag-wall code {
  color: var(--jp-content-font-color1);
  background: none;
  font-family: var(--jp-code-font-family);
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
  border-color: #1a5fb4;
  color: #fff;
  background: #1a5fb4;
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
`;var ve=1e4,$=class{constructor(e,n,t,o){this.app=e,this.modules=n,this.tracker=t,this.Explanation=F(n.widgets,o,()=>t.filter(()=>!0)),this.views=new Map,this.found=new Map,this.marks=H(n,(r,i)=>M(r.found,i,n.notebook))}editor({model:e}){let n=e.sharedModel;if(n?.cell_type!=="code")return[];let t=this.modules.view.ViewPlugin.define(o=>{let r=this.views.get(n.id)??new Set;this.views.set(n.id,r.add(o));let i=this.found.get(n.id);return i&&queueMicrotask(()=>this.marks.show(o,i)),{destroy:()=>r.delete(o)}});return[this.marks.extension,t]}async follow(e){let n=t=>new this.Explanation(t);e.content.rendermime.addFactory({safe:!0,mimeTypes:[S],createRenderer:n},0),await e.context.ready,new O(e,(t,o)=>{this.found.set(t,o);for(let r of this.views.get(t)??[])this.marks.show(r,o)},(t,o)=>this.tell(e,t,o))}tell({id:e,content:n},t,o){if(o<ve||this.app.shell.currentWidget?.id===e&&!document.hidden)return;let{outputs:r}=t,i=Array.from({length:r?.length??0},(g,m)=>r?.get(m).data??{}),s=i.find(g=>L in g);if(!s)return;let l=w(s[L].language)("open"),d=()=>{this.app.shell.activateById(e),n.widgets.find(({model:g})=>g===t)?.node.scrollIntoView({block:"center"})};this.modules.apputils.Notification.info(String(s["text/plain"]).split(`
`)[0].replaceAll("`",""),{autoClose:!1,actions:[{label:l,callback:d}]})}here(){let e=this.tracker.currentWidget?.content.activeCell,n=e?.editor?.editor,t=n&&C(n,this.marks.field);return t?{view:n,placed:t}:null}apply(e){let n=this.here();n&&M(n.placed.found,e,this.modules.notebook)}fromReport(e){let{change:n,run:t}=e.detail,o=e.composedPath().find(s=>s instanceof HTMLElement&&s.classList.contains("jp-Cell")),r=[...this.found.values()].flat(),i=r.find(({mark:s,from:l,notebook:d})=>d.panel.content.widgets.find(({node:g})=>g===o)?.model===l&&s.change?.line===n.line&&Y(s.change?.after??"")===Y(n.after));e.detail.refused=i?M(i,t,this.modules.notebook):w(document.documentElement.lang)("refused_gone")}async next(){let e=this.tracker.currentWidget?.content;if(!e)return;let n=e.mode==="edit",t=n?_e(e.activeCell):0,o=e.widgets.flatMap((g,m)=>(this.found.get(g.model.sharedModel.id)??[]).flatMap(b=>{let c=v(g.model.sharedModel.getSource().split(`
`),b.checked),u=b.mark.line+c-b.checked.first_line;return c?[{at:m,cell:g,found:b,line:u}]:[]}));o.sort((g,m)=>g.at-m.at||g.line-m.line);let r=e.activeCellIndex,i=o.find(g=>g.at>r||g.at===r&&g.line>t),s=i??o[0];if(!s)return;e.activeCellIndex=s.at,e.mode="edit",await s.cell.ready;let{editor:l}=s.cell,{to:d}=l.editor.state.doc.line(s.line);l.focus(),l.editor.dispatch({selection:{anchor:d},scrollIntoView:!0,effects:this.marks.effects.open.of(s.found)})}release(){let e=this.here();e?.view.dispatch({effects:this.marks.effects.release.of(e.placed.found)})}},Y=a=>a.trim().split(`
`).map(e=>e.trim()).join(`
`);function _e(a){let e=a?.editor?.editor.state;return e?e.doc.lineAt(e.selection.main.head).number:0}function Z(a){let{apputils:e,codemirror:n,notebook:t,rendermime:o,translation:r}=a;return{id:"nbautograd:plugin",autoStart:!0,requires:[t.INotebookTracker,n.IEditorExtensionRegistry,o.IRenderMimeRegistry],optional:[e.ICommandPalette,r.ITranslator],activate(i,s,l,d,g,m){document.head.append(Object.assign(document.createElement("style"),{textContent:U}));let b=new $(i,a,s,d),{EditorExtensionRegistry:c}=n;l.addExtension({name:"nbautograd:marks",factory:h=>c.createImmutableExtension(b.editor(h))}),s.forEach(h=>void b.follow(h)),s.widgetAdded.connect((h,x)=>void b.follow(x));let u=m?.languageCode?.startsWith("zh")?"zh":"en",f=new j(i,s,a,u);f.addWriting(),f.add("command.next","next-finding",()=>b.next()),f.add("command.apply","apply",()=>b.apply(!1)),f.add("command.apply_and_run","apply-and-run",()=>b.apply(!0)),f.add("command.release","release",()=>b.release());for(let h of f.ids)g?.addItem({command:h,category:"nbautograd"});document.addEventListener("nbautograd:apply",h=>b.fromReport(h)),document.documentElement.dataset.nbautogradLab="1"}}}var X={};async function Ae(a){let e=Object.values(X[a]??{}),n=e.find(t=>t.loaded)??e[0];if(!n)throw new Error(`nbautograd: this application has no ${a}`);return(await n.get())()}var Ee={init(a){X=a},async get(){let[a,e,n,t,o,r,i,s]=await Promise.all(["@jupyterlab/apputils","@jupyterlab/codemirror","@jupyterlab/notebook","@jupyterlab/rendermime","@jupyterlab/translation","@lumino/widgets","@codemirror/view","@codemirror/state"].map(Ae)),l={apputils:a,codemirror:e,notebook:n,rendermime:t,translation:o,widgets:r,view:i,state:s};return()=>({__esModule:!0,default:[Z(l)]})}},Q=window;Q._JUPYTERLAB={...Q._JUPYTERLAB,nbautograd:Ee};})();
