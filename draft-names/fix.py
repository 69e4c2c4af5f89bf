# fix.py OLDROOT NEWROOT file...: carries mutant tables over a renaming.
import re,sys,os,json
oldroot,newroot=sys.argv[1:3]
LIT=r'(?:"(?:[^"\\\n]|\\.)*"|`[^`]*`)'
def dec(l):
    if l[0]=='`': return l[1:-1]
    return re.sub(r'\\(.)',lambda m:{'n':'\n','t':'\t','"':'"','\\':'\\'}[m.group(1)],l[1:-1])
def enc(s,l):
    if l[0]=='`': return '`'+s+'`'
    return '"'+s.replace('\\','\\\\').replace('"','\\"').replace('\n','\\n').replace('\t','\t' if '\t' in l else '\\t')+'"'
tok=re.compile(r'[A-Za-z_]\w*|\S')
for f in sys.argv[3:]:
    p=os.path.join(newroot,f); s=open(p).read(); d=os.path.dirname(f)
    def sub(m):
        file,old,new=dec(m.group(1)),dec(m.group(3)),dec(m.group(5))
        path=os.path.normpath(os.path.join(d,file))
        try: a=open(os.path.join(oldroot,path)).read()
        except OSError:
            print(f,'no file',path); return m.group(0)
        b=open(os.path.join(newroot,path)).read()
        i=a.find(old)
        if i<0: print(f,path,'not in old source:',old[:60]); return m.group(0)
        # the lines around in both
        la=a[:i].count('\n'); n=old.count('\n')+1
        A='\n'.join(a.split('\n')[la:la+n]); B='\n'.join(b.split('\n')[la:la+n])
        ta,tb=tok.findall(A),tok.findall(B)
        if len(ta)!=len(tb): print(f,path,'tokens differ:',A[:100],'|',B[:100]); return m.group(0)
        ren={x:y for x,y in zip(ta,tb) if x!=y}
        # position-wise renaming of old, via global position
        off=i-(a.rfind('\n',0,i)+1)
        # token index at which old begins in A
        spans=[(t.start(),t.end(),t.group()) for t in tok.finditer(A)]
        res=[];pos=off;end=off+len(old);bt=tb
        out='';cur=off
        for k,(st,en,t) in enumerate(spans):
            if st>=end or en<=off: continue
            if st<off or en>end: continue
            out+=A[cur:st]+bt[k]; cur=en
        out+=A[cur:end]
        o=out
        if o not in b: # whitespace by gofmt
            print(f,path,'not in new source:',repr(o[:90])); 
        nn=re.sub(r'[A-Za-z_]\w*',lambda x:ren.get(x.group(),x.group()),new)
        return enc(file,m.group(1))+m.group(2)+enc(o,m.group(3))+m.group(4)+enc(nn,m.group(5))
    t=re.sub('('+LIT+r')(,\s*)('+LIT+r')(,\s*)('+LIT+')',lambda m: sub(m) if dec(m.group(1)).endswith('.go') else m.group(0),s)
    if t!=s: open(p,'w').write(t); print(f,'changed')
