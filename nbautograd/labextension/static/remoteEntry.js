"use strict";(()=>{function v(o,e){let n=e.text.split(`
`),t=r=>n.every((i,s)=>o[r+s]===i);if(t(e.first_line-1))return e.first_line;let a=o.flatMap((r,i)=>t(i)?[i+1]:[]);return a.length===1?a[0]:0}function O(o,e){if(e.cell)return o.find(t=>t.id===e.cell);let n=o.filter(t=>v(t.getSource().split(`
`),e));return n.length===1?n[0]:void 0}var L={en:{always:"Always, in this session",apply:"Apply",apply_and_run:"Apply and run",changed_since:"The code has changed since it was checked. Run the cell again.","command.apply":"Autograd: apply the change of this line","command.apply_and_run":"Autograd: apply the change of this line and run","command.audit":"Autograd: audit this cell","command.check":"Autograd: check the Function of this cell","command.explain":"Autograd: explain the last error","command.freeze":"Autograd: freeze this notebook as a page","command.graph":"Autograd: show the graph of the selected variable","command.next":"Autograd: go to the next finding","command.release":"Autograd: hide the change of this line",find:"Find the line",finding:"The cells run once more, in a copy of the process",ghost:"change that was tried",gone:"The checked code is not in a cell of this notebook.",line:"line {line}",lines:"your lines of this error",more:"More",no_kernel:"No kernel is connected.",open:"Show",stop:"Stop",traceback:"traceback, with {count} frames of torch",untrusted:"This notebook is not trusted, so the change cannot be applied. Run the cell to trust its output."},zh:{always:"本次会话里总是如此",apply:"应用",apply_and_run:"应用并运行",changed_since:"代码在检查之后改过。请重新运行这个单元格。","command.apply":"Autograd：应用这一行的修改","command.apply_and_run":"Autograd：应用这一行的修改并运行","command.audit":"Autograd：审查这个单元格","command.check":"Autograd：检查这个单元格的 Function","command.explain":"Autograd：解释最近一次错误","command.freeze":"Autograd：把这个 notebook 冻结成网页","command.graph":"Autograd：显示所选变量的计算图","command.next":"Autograd：转到下一处发现","command.release":"Autograd：隐藏这一行的修改",find:"找出这一行",finding:"正在进程的副本里重新运行这些单元格",ghost:"试过的修改",gone:"检查过的代码不在这个 notebook 的单元格里。",line:"第 {line} 行",lines:"你的代码里与这个错误有关的行",more:"更多",no_kernel:"没有连接到内核。",open:"查看",stop:"停止",traceback:"回溯，其中 torch 的帧有 {count} 个",untrusted:"这个 notebook 未受信任，不能应用修改。重新运行单元格即可信任它的输出。"}};var w=o=>(e,n)=>(o==="zh"?L.zh:L.en)[e].replace(/\{(\w+)\}/g,(t,a)=>String(n?.[a]??t));function j({mark:o,checked:e,language:n,from:t,notebook:a},r,{NotebookActions:i}){let s=w(n),l=o.change,u=a.home(e);if(!l)return s("gone");if(!t.trusted)return s("untrusted");if(!u)return s("gone");let f=u.sharedModel.getSource(),b=f.split(`
`),x=v(b,e);if(!x)return s("changed_since");let d=l.line+x-e.first_line-1,c=b.slice(0,d).join(`
`).length+(d?1:0);if(u.sharedModel.transact(()=>u.sharedModel.updateSource(c,c+l.before.length,l.after)),!r)return"";let{panel:g}=a,m=g.content.widgets.filter(({model:h})=>h===u||h===t);return i.runCells(g.content,m,g.sessionContext),""}var te=/^\s*%(re)?load_ext\s+nbautograd\b/m,ne=/[\p{L}_][\p{L}\p{N}_.]*/gu;function oe(o){let e=o?.editor?.editor.state;if(!e)return"";let{from:n,to:t,head:a}=e.selection.main,r=e.doc.toString();return n<t?r.slice(n,t).trim():[...r.matchAll(ne)].find(({0:i,index:s})=>s<=a&&a<=s+i.length)?.[0]??""}var ae={check:()=>({above:"%%autograd_function --inputs "}),audit:()=>({above:"%%autograd_audit",runs:!0}),explain:()=>({line:"%autograd_explain --run"}),graph({content:o}){let e=oe(o.activeCell);return e?{line:`%autograd_graph ${e}`}:null},freeze:({context:o})=>({line:`!nbautograd freeze "${o.path.split("/").pop()}"`,saves:!0})},M=class{constructor(e,n,t,a){this.app=e,this.tracker=n,this.actions=t.notebook.NotebookActions,this.say=w(a),this.ids=[]}add(e,n,t){let a=`nbautograd:${n}`;this.ids.push(a),this.app.commands.addCommand(a,{label:this.say(e),execute:t,isEnabled:()=>!!this.tracker.currentWidget})}addWriting(){for(let[e,n]of Object.entries(ae)){let t=`command.${e}`;this.add(t,e,()=>{let a=this.tracker.currentWidget,r=a&&n(a);if(r)return this.write(a,r)})}}async write(e,{line:n,above:t,runs:a,saves:r}){let{content:i}=e,s=i.activeCell;if(r&&await e.context.save(),n){let x=i.widgets.some(({model:c})=>te.test(c.sharedModel.getSource()));this.actions.insertBelow(i);let d=i.activeCell;return d.model.sharedModel.setSource(x?n:`%load_ext nbautograd
${n}`),this.actions.runCells(i,[d],e.sessionContext)}if(!t||s?.model.type!=="code"||!s.editor)return;let{sharedModel:l}=s.model,u=l.getSource(),f=t.split(" ")[0];if(u.startsWith(f)||l.transact(()=>l.updateSource(0,0,`${t}
`)),a)return this.actions.runCells(i,[s],e.sessionContext);i.mode="edit",s.editor.focus();let{doc:b}=s.editor.editor.state;s.editor.editor.dispatch({selection:{anchor:b.line(1).to}})}};var re=/[\u202a-\u202e\u2066-\u2069]/g,se=/((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)/,ie=/\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) \/ d (?=\S)/g,le=/(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))/g;function z(o,e,n=[]){for(let[t,a]of Object.entries(typeof e=="string"?{class:e}:e??{}))if(!(a==null||a===!1))if(t==="on")for(let[r,i]of Object.entries(a))o.addEventListener(r,i);else o.setAttribute(t,a===!0?"":String(a));return o.append(...n.filter(t=>t!=null&&t!==!1).flatMap(t=>t instanceof Node?t:ce(o,String(t).replace(re,"�")))),o}function ce(o,e){return!(o instanceof HTMLElement)||o.matches("option,pre,style")?[e]:e.replace(ie,"d $1 / d ").replace(le," ").split(se).map((n,t)=>t%2?Object.assign(document.createElement("span"),{className:"whole",textContent:n}):n)}var p=(o,e,...n)=>z(document.createElement(o),e,n);var A=(o,e,n="button")=>p("button",{class:n,on:{click:e}},o);function k(o){let e=o.split(/`([^`\n]+)`/);return z(document.createDocumentFragment().appendChild(p("span")),null,e.map((n,t)=>t%2?p("code",null,n):n))}var T={bug:"✗",risk:"!",explained:"◆"};function E({after:o,lit:e}){return o.split(`
`).map((t,a)=>{let r=[],i=0;for(let[,s,l]of e.filter(([u])=>u===a))r.push(t.slice(i,s),p("mark","nbag-lit",t.slice(s,l))),i=l;return p("span","nbag-row",...r,t.slice(i))})}function W({found:o,line:e},n){let{mark:t,language:a,from:r}=o,i=w(a),s=t.change,l=p("p",{class:"nbag-said",role:"status"}),u=f=>()=>void(l.textContent=n(f));return s&&!r.trusted&&(l.textContent=i("untrusted")),p("section",{class:`nbag-card nbag-${t.tone}`,"aria-label":`${t.kind}, ${i("line",{line:e})}`},p("p",null,p("strong","nbag-kind",`${T[t.tone]} ${t.kind}`)," ",k(t.message)),s&&p("pre",{class:"nbag-change",tabindex:"0"},p("code",null,...E(s))),s&&p("p","nbag-note",k(s.note)),s&&r.trusted&&p("div","nbag-buttons",A(i("apply_and_run"),u(!0),"nbag-button nbag-first"),A(i("apply"),u(!1),"nbag-button")),l)}var N=({found:o,exact:e})=>e&&o.from.trusted&&!!o.mark.change;function P(o,e){let n=e.length?o.toString().split(`
`):[];return e.flatMap(t=>{let a=v(n,t.checked);if(!a)return[];let r=a-t.checked.first_line,i=t.mark.line+r,s=t.mark.change,l=s?s.line+r:0,u=s?l+s.before.split(`
`).length-1:i,f=o.line(Math.min(i,l||i)).from,b=o.line(Math.max(i,u)).to;return[{found:t,line:i,from:f,to:b,change:l,exact:!0}]})}function de({given:o,placed:e},n){let t=P(n.newDoc,o),a=e.flatMap(r=>{if(t.some(({found:f})=>f===r.found))return[];if(n.changes.touchesRange(r.from,r.to))return[];let i=n.startState.doc.line(r.line).from,s=n.newDoc.lineAt(n.changes.mapPos(i,1)).number,[l,u]=[r.from,r.to].map(f=>n.changes.mapPos(f,1));return[{...r,line:s,from:l,to:u,change:0,exact:!1}]});return[...t,...a]}function H({view:o,state:e},n){let t={set:e.StateEffect.define(),release:e.StateEffect.define(),open:e.StateEffect.define()},a=new e.Compartment;class r extends o.WidgetType{constructor(c){super(),this.placed=c}eq(c){return c.placed.found===this.placed.found}toDOM(){return ue(this.placed,n)}}class i extends o.GutterMarker{constructor(c){super(),this.mark=c}eq(c){return c.mark===this.mark}toDOM(){return p("span",`nbag-sign nbag-${this.mark.tone}`,T[this.mark.tone])}}function s({placed:d,released:c},g){let m=d.flatMap(h=>{let{mark:y}=h.found,{from:I,to:X}=g.line(h.line),[V,ee]=y.columns,D=[o.Decoration.mark({class:`nbag-under nbag-${y.tone}`}).range(I+V,Math.min(X,I+ee))];if(N(h)&&!c.includes(h.found)){let _=o.Decoration.widget({widget:new r(h),block:!0,side:1});D.push(_.range(g.line(h.change+B(h)-1).to))}return D.filter(_=>_.from<_.to||_.value.spec.block)});return o.Decoration.set(m,!0)}let l=(d,c)=>({pos:c,above:!0,create:()=>({dom:p("div",null,W(d,g=>n(d,g)))})}),u=e.StateField.define({create:()=>({given:[],placed:[],released:[],opened:null}),update(d,c){let g=d;c.docChanged?g={...g,placed:de(g,c),opened:null}:c.selection&&(g={...g,opened:null});for(let{value:m,is:h}of c.effects.map(y=>({value:y.value,is:y.is.bind(y)})))h(t.set)&&(g={given:m,placed:P(c.newDoc,m),released:[],opened:null}),h(t.release)&&(g={...g,released:[...g.released,m],opened:null}),h(t.open)&&(g={...g,opened:m});return g},provide:d=>[o.EditorView.decorations.compute([d],c=>s(c.field(d),c.doc)),o.showTooltip.compute([d],c=>{let{placed:g,opened:m}=c.field(d),h=g.find(({found:y})=>y===m);return h?l(h,c.doc.line(h.line).from):null})]}),f=o.gutter({class:"nbag-gutter",markers(d){let{placed:c}=d.state.field(u),g=c.map(m=>new i(m.found.mark).range(d.state.doc.line(m.line).from));return e.RangeSet.of(g,!0)},domEventHandlers:{mousedown(d,c){let{placed:g}=d.state.field(u),m=g.find(({line:h})=>d.state.doc.line(h).from===c.from);return m&&d.dispatch({effects:t.open.of(m.found)}),!!m}}}),b=o.hoverTooltip((d,c)=>{let{placed:g}=d.state.field(u),m=d.state.doc.lineAt(c).number,h=g.find(y=>y.line===m);return h?l(h,d.state.doc.line(m).from):null}),x=o.EditorView.updateListener.of(d=>{let c=R(d.view,u);d.view.dom.parentElement?.classList.toggle("nbag-at-mark",!!c)});return{field:u,effects:t,extension:[u,b,x,a.of([])],show(d,c){let g=a.reconfigure(c.length?f:[]);d.dispatch({effects:[t.set.of(c),g]})}}}var B=({found:o})=>o.mark.change?.before.split(`
`).length??0;function R(o,e){let{doc:n,selection:t}=o.state,{placed:a,released:r}=o.state.field(e),i=n.lineAt(t.main.head).number;return a.find(s=>N(s)&&!r.includes(s.found)&&(s.line===i||i>=s.change&&i<s.change+B(s)))}function ue(o,e){let{mark:n,language:t}=o.found,a=n.change,r=w(t),i=p("div",{class:"nbag-ghost",role:"note","aria-label":r("ghost")},p("code",null,...E(a)),p("span","nbag-note",k(a.note)),p("kbd","nbag-key","Tab"));return i.addEventListener("mousedown",s=>{s.preventDefault(),e(o,!1)}),i}async function K(o,e,n){let t=null,a="";for(let r of e){t=null;let i={code:r,store_history:!1,stop_on_error:!1},s=o.requestExecute(i,!0,{cellId:n});s.onIOPub=({header:l,content:u})=>{["display_data","update_display_data","execute_result"].includes(l.msg_type)&&(t=u.data["text/plain"]?u.data:t),l.msg_type==="stream"&&u.name==="stderr"&&(a+=u.text),l.msg_type==="error"&&(a=`${u.ename}: ${u.evalue}`)},await s.done.catch(l=>a=l.message)}return a?{data:null,words:a.trim()}:{data:t,words:""}}var C="application/vnd.nbautograd.explanation+json",ge="%autograd_explain --on --run",pe=/^.*File .*[\\/]torch[\\/].*$/gm,q=110;function F({Widget:o},e,n){return class extends o{constructor(t){super(),this.options=t,this.folded=null}async renderModel(t){let a=e.createRenderer("text/html",this.options);await a.renderModel(t),this.model=t,this.rest?.dispose(),this.rest=a,this.draw()}onAfterAttach(){this.draw()}onBeforeDetach(){this.folded?.classList.remove("nbag-folded")}dispose(){this.rest?.dispose(),super.dispose()}draw(){if(!this.model||!this.node.isConnected)return;let{data:t,trusted:a}=this.model,r=t[C],i=w(r.language),s=fe(this.node,n());this.folded?.classList.remove("nbag-folded"),this.folded=me(this.node,s);let l=p("p",{class:"nbag-said",role:"status"});this.node.replaceChildren(p("section",{class:"nbag-wall","aria-label":r.answer},this.folded&&he(this.folded,s,i),p("p","nbag-answer",k(r.answer)),r.rows.length>0&&be(r,i),r.change&&p("pre",{class:"nbag-change",tabindex:"0"},p("code",null,...E(r.change))),r.change&&p("p","nbag-note",k(r.change.note)),a&&s&&xe(this.node,r,s,l),l,p("details",null,p("summary",null,i("more")),this.rest.node)))}}}function fe(o,e){let n=e.find(s=>s.node.contains(o)),t=n?.content.widgets.find(s=>s.node.contains(o))?.model,a=o.closest(".jp-OutputArea-child"),r=a?[...a.parentElement?.children??[]].indexOf(a):-1,i=t?.outputs;return!n||!t||!i||r<0||r>=i.length?null:C in i.get(r).data?{panel:n,cell:t,at:r}:null}function me(o,e){let n=o.closest(".jp-OutputArea-child")?.previousElementSibling;return!e?.at||!(n instanceof HTMLElement)?null:e.cell.outputs?.get(e.at-1).type==="error"?n:null}function he(o,e,n){let t=e?.at?e.cell.outputs?.get(e.at-1).toJSON():void 0,a=String(t?.evalue??"").split(/: \[|\. |\n/)[0],r=(t?.traceback??[]).join(`
`).replace(/\x1b\[[\d;]*m/g,"").match(pe)??[];o.classList.add("nbag-folded");let i=A("",s,"nbag-fold");i.append(p("strong",null,t?.ename??""),` ${a.length>q?`${a.slice(0,q)}…`:a} `,p("span","nbag-note",n("traceback",{count:r.length}))),i.setAttribute("aria-expanded","false");function s(){let l=o.classList.toggle("nbag-folded");i.setAttribute("aria-expanded",String(!l))}return i}var be=({rows:o},e)=>p("ol",{class:"nbag-arc","aria-label":e("lines")},...o.map(({role:n,place:t,text:a,main:r})=>p("li",r?"nbag-main":null,p("span","nbag-role",n),p("code",null,a),p("span","nbag-note",k(t)))));function xe(o,e,n,t){let a=w(e.language),r=(u,f,b="")=>A(a(u),f,`nbag-button ${b}`),i=u=>()=>{let f={change:e.change,run:u,refused:""};o.dispatchEvent(new CustomEvent("nbautograd:apply",{bubbles:!0,composed:!0,detail:f})),t.textContent=f.refused},s=u=>async()=>{let{panel:f,cell:b,at:x}=n,d=f.sessionContext.session?.kernel;if(!d)return void(t.textContent=a("no_kernel"));for(let h of l.querySelectorAll("button"))h.disabled=!0;let c=r("stop",()=>void d.interrupt());t.replaceChildren(a("finding"),p("progress",{"aria-label":a("finding")}),c);let{data:g,words:m}=await K(d,u,b.sharedModel.id);if(g)return b.outputs?.set(x,{output_type:"display_data",data:g,metadata:{}});t.textContent=m;for(let h of l.querySelectorAll("button"))h.disabled=!1},l=p("div","nbag-buttons",e.change&&r("apply_and_run",i(!0),"nbag-first"),e.change&&r("apply",i(!1)),e.find&&r("find",s([e.find]),"nbag-first"),e.find.includes("@")&&r("always",s([ge,e.find])));return l}var we="application/vnd.nbautograd.marks+json",S=class{constructor(e,n){this.panel=e,this.show=n,this.read=new Map,this.found=new Map,this.cells.changed.connect(()=>this.follow()),this.follow()}get cells(){return this.panel.content.model.cells}get all(){return Array.from({length:this.cells.length},(e,n)=>this.cells.get(n))}home(e){let n=O(this.all.map(t=>t.sharedModel),e);return this.all.find(t=>t.sharedModel===n)}follow(){let e=this.all.filter(n=>n.type==="code");for(let[n,{changed:t}]of this.read)e.includes(n)||(n.outputs?.changed.disconnect(t),n.stateChanged.disconnect(t),this.read.delete(n));for(let n of e)if(!this.read.has(n)){let t=()=>void Promise.resolve().then(()=>this.reread(n));this.read.set(n,{changed:t,outputs:G(n)}),n.outputs?.changed.connect(t),n.stateChanged.connect(t),n.contentChanged.connect(()=>this.again())}this.refresh()}reread(e){let n=this.read.get(e),t=G(e);!n||!t.length&&e.executionState==="running"||(n.outputs=t,this.refresh())}again(){[...this.read.values()].some(({outputs:n})=>n.some(t=>t.checked.some(a=>!a.cell)))&&this.refresh()}refresh(){let e=this.all.map(r=>r.sharedModel),n=new Map,t=new Set;for(let[r,{outputs:i}]of this.read)for(let{checked:s,marks:l,language:u}of i){let f=s.map(b=>O(e,b));for(let b of l){let x=f[b.checked],d=s[b.checked],c=JSON.stringify([x?.id,d.text,b]);if(!x||t.has(c))continue;t.add(c);let g=n.get(x.id)??[];n.set(x.id,[...g,{mark:b,checked:d,language:u,from:r,notebook:this}])}}let a=this.found;this.found=n;for(let r of new Set([...a.keys(),...n.keys()]))ye(a.get(r),n.get(r))||this.show(r,n.get(r)??[])}};function G({outputs:o}){return o?Array.from({length:o.length},(e,n)=>o.get(n).data[we]).filter(e=>e&&Array.isArray(e.marks)&&Array.isArray(e.checked)):[]}function ye(o=[],e=[]){return o.length===e.length&&o.every(({mark:n,checked:t,from:a},r)=>{let i=e[r];return n===i.mark&&t===i.checked&&a===i.from})}var J=`.nbag-under {
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
.nbag-wall p {
  margin: 0 0 6px;
}
.nbag-wall p:empty {
  display: none;
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
`;var $=class{constructor(e,n,t,a){this.app=e,this.modules=n,this.tracker=t,this.Explanation=F(n.widgets,a,()=>t.filter(()=>!0)),this.views=new Map,this.found=new Map,this.marks=H(n,(r,i)=>j(r.found,i,n.notebook))}editor({model:e}){let n=e.sharedModel;if(n?.cell_type!=="code")return[];let t=this.modules.view.ViewPlugin.define(a=>{let r=this.views.get(n.id)??new Set;this.views.set(n.id,r.add(a));let i=this.found.get(n.id);return i&&queueMicrotask(()=>this.marks.show(a,i)),{destroy:()=>r.delete(a)}});return[this.marks.extension,t]}async follow(e){let n=t=>new this.Explanation(t);e.content.rendermime.addFactory({safe:!0,mimeTypes:[C],createRenderer:n},0),await e.context.ready,new S(e,(t,a)=>{this.found.set(t,a);for(let r of this.views.get(t)??[])this.marks.show(r,a)})}here(){let e=this.tracker.currentWidget?.content.activeCell,n=e?.editor?.editor,t=n&&R(n,this.marks.field);return t?{view:n,placed:t}:null}apply(e){let n=this.here();n&&j(n.placed.found,e,this.modules.notebook)}fromReport(e){let{change:n,run:t}=e.detail,a=e.composedPath().find(s=>s instanceof HTMLElement&&s.classList.contains("jp-Cell")),r=[...this.found.values()].flat(),i=r.find(({mark:s,from:l,notebook:u})=>u.panel.content.widgets.find(({node:f})=>f===a)?.model===l&&s.change?.line===n.line&&U(s.change?.after??"")===U(n.after));e.detail.refused=i?j(i,t,this.modules.notebook):w(document.documentElement.lang)("gone")}async next(){let e=this.tracker.currentWidget?.content;if(!e)return;let n=e.mode==="edit",t=n?ve(e.activeCell):0,a=e.widgets.flatMap((f,b)=>(this.found.get(f.model.sharedModel.id)??[]).flatMap(x=>{let d=v(f.model.sharedModel.getSource().split(`
`),x.checked),c=x.mark.line+d-x.checked.first_line;return d?[{at:b,cell:f,found:x,line:c}]:[]}));a.sort((f,b)=>f.at-b.at||f.line-b.line);let r=e.activeCellIndex,i=a.find(f=>f.at>r||f.at===r&&f.line>t),s=i??a[0];if(!s)return;e.activeCellIndex=s.at,e.mode="edit",await s.cell.ready;let{editor:l}=s.cell,{to:u}=l.editor.state.doc.line(s.line);l.focus(),l.editor.dispatch({selection:{anchor:u},scrollIntoView:!0,effects:this.marks.effects.open.of(s.found)})}release(){let e=this.here();e?.view.dispatch({effects:this.marks.effects.release.of(e.placed.found)})}},U=o=>o.trim().split(`
`).map(e=>e.trim()).join(`
`);function ve(o){let e=o?.editor?.editor.state;return e?e.doc.lineAt(e.selection.main.head).number:0}function Y(o){let{apputils:e,codemirror:n,notebook:t,rendermime:a,translation:r}=o;return{id:"nbautograd:plugin",autoStart:!0,requires:[t.INotebookTracker,n.IEditorExtensionRegistry,a.IRenderMimeRegistry],optional:[e.ICommandPalette,r.ITranslator],activate(i,s,l,u,f,b){document.head.append(Object.assign(document.createElement("style"),{textContent:J}));let x=new $(i,o,s,u),{EditorExtensionRegistry:d}=n;l.addExtension({name:"nbautograd:marks",factory:m=>d.createImmutableExtension(x.editor(m))}),s.forEach(m=>void x.follow(m)),s.widgetAdded.connect((m,h)=>void x.follow(h));let c=b?.languageCode?.startsWith("zh")?"zh":"en",g=new M(i,s,o,c);g.addWriting(),g.add("command.next","next-finding",()=>x.next()),g.add("command.apply","apply",()=>x.apply(!1)),g.add("command.apply_and_run","apply-and-run",()=>x.apply(!0)),g.add("command.release","release",()=>x.release());for(let m of g.ids)f?.addItem({command:m,category:"nbautograd"});document.addEventListener("nbautograd:apply",m=>x.fromReport(m)),document.documentElement.dataset.nbautogradLab="1"}}}var Q={};async function Ae(o){let e=Object.values(Q[o]??{}),n=e.find(t=>t.loaded)??e[0];if(!n)throw new Error(`nbautograd: this application has no ${o}`);return(await n.get())()}var _e={init(o){Q=o},async get(){let[o,e,n,t,a,r,i,s]=await Promise.all(["@jupyterlab/apputils","@jupyterlab/codemirror","@jupyterlab/notebook","@jupyterlab/rendermime","@jupyterlab/translation","@lumino/widgets","@codemirror/view","@codemirror/state"].map(Ae)),l={apputils:o,codemirror:e,notebook:n,rendermime:t,translation:a,widgets:r,view:i,state:s};return()=>({__esModule:!0,default:[Y(l)]})}},Z=window;Z._JUPYTERLAB={...Z._JUPYTERLAB,nbautograd:_e};})();
