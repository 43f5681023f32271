"""The embedded entailment scorer: rows out of question-answering files, training, and figures on rows kept out.

Nobody has labelled these pairs: a question's answer is written as a statement, which its gold passage entails and
the same statement with another answer, or beside another passage, is not.
"""
